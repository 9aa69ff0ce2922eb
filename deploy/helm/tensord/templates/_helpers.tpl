{{- define "tensord.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 50 characters: the longest suffix is "-headless". */}}
{{- define "tensord.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "tensord.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tensord.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tensord.selector" -}}
app.kubernetes.io/name: {{ include "tensord.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tensord.labels" -}}
{{ include "tensord.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "tensord.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "tensord.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tensord.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* A dictionary of flags as arguments; a list repeats the flag. Numbers of YAML are floats here: whole ones are
     written without an exponent. */}}
{{- define "tensord.flags" -}}
{{- range $name, $value := . }}
{{- range (kindIs "slice" $value | ternary $value (list $value)) }}
{{- $text := toString . }}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ $text = toString (int64 .) }}{{ end }}
- {{ printf "--%s=%s" $name $text | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* "true" if the HTTP port is served. */}}
{{- define "tensord.hasHttp" -}}
{{- if and .Values.http.enabled (or .Values.http.besideTls (not .Values.tls.secretName)) }}true{{ end -}}
{{- end -}}

{{/* Arguments of serve; context: root, flags, extraArgs, delay (seconds). */}}
{{- define "tensord.args" -}}
{{- $values := .root.Values -}}
- serve
- --model-repository={{ $values.models.path }}
- --grpc-address=0.0.0.0
- --metrics-address=0.0.0.0
{{- if include "tensord.hasHttp" .root }}
- --allow-http=true
- --http-address=0.0.0.0
{{- end }}
- --exit-delay-secs={{ .delay }}
- --exit-timeout-secs={{ $values.drain.exitTimeoutSeconds }}
{{- include "tensord.flags" .flags }}
{{- if $values.tls.secretName }}
- {{ $values.tls.mutual | ternary "--grpc-use-ssl-mutual=true" "--grpc-use-ssl=true" }}
- --grpc-server-cert=/tls/tls.crt
- --grpc-server-key=/tls/tls.key
{{- if $values.tls.mutual }}
- --grpc-root-cert=/tls/ca.crt
{{- end }}
{{- end }}
{{- if $values.accessTokens.secretName }}
- --access-tokens=/tokens/{{ $values.accessTokens.key }}
{{- end }}
{{- with .extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tensord.probes" -}}
{{- $http := or (eq .Values.probes.type "http") (not (empty .Values.tls.secretName)) -}}
{{- $ready := $http | ternary (dict "httpGet" (dict "path" "/v2/health/ready" "port" "metrics")) (dict "grpc" (dict "port" 8001)) -}}
{{- $live := $http | ternary (dict "httpGet" (dict "path" "/v2/health/live" "port" "metrics")) (dict "grpc" (dict "port" 8001 "service" "grpc.health.v1.Health")) -}}
startupProbe:
  {{- toYaml $ready | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: {{ max 1 (div (int .Values.probes.startupSeconds) 2) }}
readinessProbe:
  {{- toYaml $ready | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: 2
livenessProbe:
  {{- toYaml $live | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
  failureThreshold: 3
  {{- /* What does not answer does not hear SIGTERM either. */}}
  {{- if semverCompare ">=1.25-0" .Capabilities.KubeVersion.Version }}
  terminationGracePeriodSeconds: 5
  {{- end }}
{{- end -}}

{{/* The part of the container that servers and the trainer share; context: root, resources. */}}
{{- define "tensord.container" -}}
{{- $values := .root.Values -}}
name: tensord
image: {{ include "tensord.image" .root | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
command: [tensord]
{{- with $values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: grpc, containerPort: 8001}
{{- if include "tensord.hasHttp" .root }}
  - {name: http, containerPort: 8000}
{{- end }}
  - {name: metrics, containerPort: 8002}
{{ include "tensord.probes" .root }}
resources:
  {{- $resources := deepCopy .resources }}
  {{- if $values.gpu.enabled }}
  {{- $resources = mergeOverwrite $resources (dict "limits" (dict $values.gpu.resource (int $values.gpu.count))) }}
  {{- end }}
  {{- toYaml $resources | nindent 2 }}
securityContext:
  {{- toYaml $values.securityContext | nindent 2 }}
{{- end -}}

{{- define "tensord.sharedMounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.tls.secretName }}
- {name: tls, mountPath: /tls, readOnly: true}
{{- end }}
{{- if .Values.accessTokens.secretName }}
- {name: tokens, mountPath: /tokens, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tensord.volumes" -}}
- name: models
  {{- include "tensord.modelsVolume" . | nindent 2 }}
- name: tmp
  emptyDir: {{ toJson .Values.tmp }}
{{- with .Values.tls.secretName }}
- name: tls
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .Values.accessTokens.secretName }}
- name: tokens
  secret: {secretName: {{ . }}}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tensord.modelsVolume" -}}
{{- if .Values.models.existingClaim -}}
persistentVolumeClaim: {claimName: {{ .Values.models.existingClaim }}}
{{- else if .Values.models.volume -}}
{{ toYaml .Values.models.volume }}
{{- else if .Values.models.fetch.enabled -}}
emptyDir: {}
{{- else -}}
persistentVolumeClaim: {claimName: {{ include "tensord.fullname" . }}-models}
{{- end -}}
{{- end -}}

{{/* Scheduling and security context; the same for servers and the trainer. */}}
{{- define "tensord.podSettings" -}}
serviceAccountName: {{ include "tensord.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ add .Values.drain.delaySeconds .Values.drain.exitTimeoutSeconds 10 }}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerations := .Values.tolerations }}
{{- if .Values.gpu.enabled }}
{{- $tolerations = append $tolerations (dict "key" .Values.gpu.resource "operator" "Exists" "effect" "NoSchedule") }}
{{- end }}
{{- with $tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A claim; context: root, name, component, claim. */}}
{{- define "tensord.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .name }}
  labels:
    {{- include "tensord.labels" .root | nindent 4 }}
  annotations:
    helm.sh/resource-policy: keep
spec:
  accessModes: {{ toJson .claim.accessModes }}
  {{- with .claim.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests: {storage: {{ .claim.size }}}
{{- end -}}

{{/* The application protocol of the port, for meshes and gateways. */}}
{{- define "tensord.grpcProtocol" -}}
{{- if .Values.tls.secretName }}https{{ else }}kubernetes.io/h2c{{ end -}}
{{- end -}}

{{/* Peers of a network policy: the trainer and its workers. */}}
{{- define "tensord.trainingPods" -}}
{{- range $component := list "trainer" "training-worker" }}
- podSelector:
    matchLabels:
      {{- include "tensord.selector" $ | nindent 6 }}
      app.kubernetes.io/component: {{ $component }}
{{- end }}
{{- end -}}

{{/* A quantity of seconds ("20m", "500u", "0.05") as a decimal number, which KEDA wants. */}}
{{- define "tensord.seconds" -}}
{{- if hasSuffix "m" . }}{{ divf (trimSuffix "m" . | float64) 1000.0 }}
{{- else if hasSuffix "u" . }}{{ divf (trimSuffix "u" . | float64) 1000000.0 }}
{{- else }}{{ . }}{{ end }}
{{- end }}
