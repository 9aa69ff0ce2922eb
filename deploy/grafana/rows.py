"""The rows of the dashboard."""

from deploy.grafana.panels import (DAEMONS, GREEN, JOBS, MODELS, RED, WINDOW, YELLOW, bars, grid, heat, lines, mean,
                                   now, number, quantile, query, rate, ratio, states, steps)

REQUESTS = "tensord_requests_total"
FAULTS = "UNKNOWN|INTERNAL|UNIMPLEMENTED|UNAVAILABLE|DATA_LOSS|RESOURCE_EXHAUSTED|DEADLINE_EXCEEDED"
REQUEST_TIME = "tensord_request_duration_seconds"
QUEUE_TIME = "tensord_queue_duration_seconds"


def overview():
    faults = rate(REQUESTS, selector=f'{MODELS},code=~"{FAULTS}"')
    memory = f"process_resident_memory_bytes{{{DAEMONS}}} / tensord_memory_limit_bytes{{{DAEMONS}}}"
    cpu = f"rate(process_cpu_seconds_total{{{DAEMONS}}}{WINDOW}) / tensord_cpu_limit_cores{{{DAEMONS}}}"
    return [
        number("Instances", "Daemons that Prometheus can scrape.", "short", query(f"sum(up{{{DAEMONS}}})"),
               steps(RED, (1, GREEN))),
        number("Models not ready", "Models without a ready version, by instance.", "short",
               query(f'sum(max by (instance, model) (tensord_model_ready{{{DAEMONS},model!=""}}) == bool 0)'),
               steps(GREEN, (1, RED))),
        number("Requests", "Answered requests, including failures.", "reqps", query(rate(REQUESTS))),
        number("Errors", "Share of requests that failed with a server-side error.", "percentunit",
               query(ratio(faults, rate(REQUESTS))), steps(GREEN, (0.001, YELLOW), (0.01, RED))),
        number("Latency, 99th percentile", "From arrival until the response is handed to the network.", "s",
               query(quantile(0.99, REQUEST_TIME))),
        number("Waiting", "Requests that wait for a worker.", "short",
               query(f"sum(tensord_pending_requests{{{MODELS}}})")),
        number("Memory", "Resident memory as a share of the process's limit, on the instance with the largest share.",
               "percentunit", query(f"max({memory})"), steps(GREEN, (0.8, YELLOW), (0.9, RED))),
        number("CPU", "Time used, as a share of the cores that the process may use; the busiest instance.",
               "percentunit", query(f"max({cpu})"), steps(GREEN, (0.8, YELLOW), (0.95, RED))),
    ]


def requests():
    return [
        lines("Requests by model", "Answered requests.", "reqps", query(rate(REQUESTS, "model"), "{{model}}")),
        lines("Requests by status", "gRPC status codes that occur.", "reqps",
              query(f"{rate(REQUESTS, 'code')} > 0", "{{code}}"), stacked=True),
        lines("Failures by reason", "REJECTED: before they ran. CANCELED: by the client. BACKEND: by the model. OTHER: "
              "never queued, as for unknown models.", "reqps",
              query(rate("tensord_request_failures_total", "reason"), "{{reason}}"), stacked=True),
        lines("Errors by model", "Share of requests that failed with a server-side error.", "percentunit",
              query(ratio(rate(REQUESTS, "model", f'{MODELS},code=~"{FAULTS}"'), rate(REQUESTS, "model")),
                    "{{model}}")),
        lines("Traffic", "Bytes of messages, and of payload copied between the wire and the model.", "Bps",
              query(rate("tensord_received_bytes_total"), "received"),
              query(rate("tensord_sent_bytes_total"), "sent"), query(rate("tensord_copied_bytes_total"), "copied")),
        lines("Bytes by model", "Request messages.", "Bps",
              query(rate("tensord_received_bytes_total", "model"), "{{model}}")),
    ]


def latency():
    buckets = f"sum by (le) (increase({REQUEST_TIME}_bucket{{{MODELS}}}{WINDOW}))"
    native = f"sum(increase({REQUEST_TIME}{{{MODELS}}}{WINDOW}))"
    parts = [("waiting", "queue"), ("gathering inputs", "compute_input"), ("running", "compute"),
             ("splitting outputs", "compute_output")]
    return [
        lines("Latency", "From arrival until the response is handed to the network, over all models.", "s",
              *(query(quantile(q, REQUEST_TIME), name) for q, name in
                ((0.5, "median"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"))), log=True),
        lines("99th percentile by model", "", "s", query(quantile(0.99, REQUEST_TIME, "model"), "{{model}}"), log=True),
        heat("Latency of requests", "How many requests took how long.", "s", f"{buckets} or {native}"),
        lines("Where the time goes", "Means; waiting is per request, the other phases per run.", "s",
              *(query(mean(f"tensord_{metric}_duration_seconds"), name) for name, metric in parts), stacked=True),
        lines("Run of the model", "Mean duration of a run, for any batch size.", "s",
              query(mean("tensord_compute_duration_seconds", "model"), "{{model}}"), log=True),
        lines("Responses of decoupled models", "Time to the first response of a request, and from one to the next.",
              "s", query(quantile(0.99, "tensord_first_response_duration_seconds", "model"), "{{model}} first, 99 %"),
              query(quantile(0.99, "tensord_next_response_duration_seconds", "model"), "{{model}} next, 99 %")),
    ]


def queues():
    busy = rate("tensord_compute_duration_seconds_sum", "model")
    busy_native = f"histogram_sum({rate('tensord_compute_duration_seconds', 'model')})"
    runs = rate("tensord_executions_total", "model")
    failed = rate("tensord_failed_executions_total", "model")
    return [
        lines("Requests under way", "Requests without a final response, and those waiting for a worker.", "short",
              query(f"sum by (model) (tensord_in_flight_requests{{{MODELS}}})", "{{model}}"),
              query(f"sum by (model) (tensord_pending_requests{{{MODELS}}})", "{{model}} waiting")),
        lines("Wait for a worker, 95th percentile", "Includes requests that were cancelled while waiting.", "s",
              query(quantile(0.95, QUEUE_TIME, "model"), "{{model}}"), log=True),
        lines("Workers in use", "Share of the time that a model's workers are running it.", "percentunit",
              query(f"({busy} or {busy_native}) / (sum by (model) (tensord_model_workers{{{MODELS}}}) > 0)",
                    "{{model}}")),
        lines("Mean batch", "Rows per run.", "short",
              query(f"{rate('tensord_batch_size_sum', 'model')} / {rate('tensord_batch_size_count', 'model')}",
                    "{{model}}")),
        heat("Batch sizes", "How many runs had how many rows.", "short",
             f"sum by (le) (increase(tensord_batch_size_bucket{{{MODELS}}}{WINDOW}))"),
        lines("Runs", "Successful runs, rows in them, and failed runs.", "ops",
              query(runs, "{{model}} runs"), query(rate("tensord_inferences_total", "model"), "{{model}} rows"),
              query(failed, "{{model}} failed")),
    ]


def models():
    def happened(metric):
        return f'sum by (model) (increase({metric}{{{DAEMONS},model=~"$model"}}{WINDOW}))'

    hits = rate("tensord_cache_hits_total", "model")
    misses = rate("tensord_cache_misses_total", "model")
    plan_hits = rate("tensord_plan_cache_hits_total", "model")
    plan_misses = rate("tensord_plan_cache_misses_total", "model")
    by = "instance, model, version"
    return [
        grid("Models", "Loaded models.",
             [("ready", "bool_yes_no", f'max by ({by}) (tensord_model_ready{{{MODELS},model!=""}})'),
              ("workers", "short", f'max by ({by}) (tensord_model_workers{{{MODELS},model!=""}})'),
              ("load", "s", f'max by ({by}) (tensord_model_load_duration_seconds{{{MODELS},model!=""}})'),
              ("plans", "short", f"max by ({by}) (tensord_plans{{{MODELS}}})"),
              ("memory of a plan", "bytes", f"max by ({by}) (tensord_plan_arena_bytes{{{MODELS}}})")]),
        lines("Loads", "Versions loaded, loads that failed, and models unloaded to make room for others.", "short",
              *(query(f"{happened(metric)} or 0 * {happened('tensord_model_loads_total')}", "{{model}} " + what)
                for metric, what in (("tensord_model_loads_total", "loaded"),
                                     ("tensord_model_load_failures_total", "failed"),
                                     ("tensord_model_evictions_total", "unloaded")))),
        lines("Response cache", "Share of requests answered from the cache.", "percentunit",
              query(ratio(hits, f"({hits} + {misses})"), "{{model}}"), most=1),
        lines("Plans found", "Share of runs that found a plan for their input shapes.", "percentunit",
              query(ratio(plan_hits, f"({plan_hits} + {plan_misses})"), "{{model}}"), most=1),
        lines("Plans made and evicted", "Plans made, plans evicted, and shapes without a plan.", "ops",
              query(plan_misses, "{{model}} made"),
              query(rate("tensord_plan_cache_evictions_total", "model"), "{{model}} evicted"),
              query(rate("tensord_plan_failures_total", "model"), "{{model}} failed"),
              query(rate("tensord_plan_refused_total", "model"), "{{model}} not proven")),
        lines("Making plans", "CPU time spent on it.", "percentunit",
              query(rate("tensord_plan_build_seconds_total", "model"), "{{model}}")),
    ]


def memory():
    pool = f"{{{DAEMONS}}}"
    asked = rate("tensord_pool_allocations_total", "instance, device", DAEMONS)
    found = rate("tensord_pool_cache_hits_total", "instance, device", DAEMONS)
    return [
        lines("Tensors by owner", "Bytes of live tensors: of models, training jobs and the server. Weights that are "
              "mapped from archives are not included.", "bytes",
              query(f"sum by (owner) (tensord_memory_bytes{pool})", "{{owner}}"), stacked=True),
        bars("Peak by owner", "Since the daemon started.", "bytes",
             now(f"max by (owner) (tensord_memory_peak_bytes{pool})", "{{owner}}")),
        lines("Process", "Resident memory, and the limit of the machine or container.", "bytes",
              query(f"process_resident_memory_bytes{pool}", "{{instance}}"),
              query(f"tensord_memory_limit_bytes{pool}", "{{instance}} limit"), log=True),
        lines("Pool", "By device: in use by tensors, free for reuse, and taken from the device.", "bytes",
              query(f"sum by (device) (tensord_pool_live_bytes{pool})", "{{device}} in use"),
              query(f"sum by (device) (tensord_pool_cached_bytes{pool})", "{{device}} free"),
              query(f"sum by (device) (tensord_pool_reserved_bytes{pool})", "{{device}} taken")),
        lines("Blocks from the pool", "Share of allocations that reused a cached block.", "percentunit",
              query(ratio(found, asked), "{{instance}} {{device}}"), most=1),
        lines("Failed allocations", "Out of memory.", "short",
              query(f"sum by (instance, device) (increase(tensord_pool_out_of_memory_total{pool}{WINDOW}))",
                    "{{instance}} {{device}}")),
    ]


def process():
    return [
        lines("CPU", "Cores in use, and how many there are to use.", "short",
              query(f"rate(process_cpu_seconds_total{{{DAEMONS}}}{WINDOW})", "{{instance}}"),
              query(f"tensord_cpu_limit_cores{{{DAEMONS}}}", "{{instance}} limit")),
        lines("Open files", "Open descriptors, including connections, and the limit.", "short",
              query(f"process_open_fds{{{DAEMONS}}}", "{{instance}}"),
              query(f"process_max_fds{{{DAEMONS}}}", "{{instance}} limit"), log=True),
        grid("Daemons", "", [
            ("up for", "s", f"time() - max by (instance) (tensord_start_time_seconds{{{DAEMONS}}})"),
            ("build", "short", f"max by (instance, version, compiler) (tensord_build_info{{{DAEMONS}}})")], width=8),
    ]


def gpus():
    return [
        lines("GPUs in use", "Utilization over the last second, by all processes on the machine.",
              "percentunit", query(f"tensord_gpu_utilization_ratio{{{DAEMONS}}}", "{{instance}} {{gpu}}"), most=1),
        lines("Memory of GPUs", "In use by all processes, and the total.", "bytes",
              query(f"tensord_gpu_memory_used_bytes{{{DAEMONS}}}", "{{instance}} {{gpu}}"),
              query(f"tensord_gpu_memory_total_bytes{{{DAEMONS}}}", "{{instance}} {{gpu}} all")),
        lines("Power of GPUs", "Power draw, and the limit of each GPU.", "watt",
              query(f"tensord_gpu_power_watts{{{DAEMONS}}}", "{{instance}} {{gpu}}"),
              query(f"tensord_gpu_power_limit_watts{{{DAEMONS}}}", "{{instance}} {{gpu}} limit"),
              query(f"rate(tensord_gpu_energy_joules_total{{{DAEMONS}}}{WINDOW})", "{{instance}} {{gpu}} mean")),
    ]


JOB_STATES = {1: ("queued", "text"), 2: ("running", "blue"), 3: ("paused", "yellow"), 4: ("completed", "green"),
              5: ("failed", "red"), 6: ("cancelled", "orange")}


def training():
    def of(metric, legend="{{job_id}}"):
        return query(f"max by (job_id) ({metric}{{{JOBS}}})", legend)

    state = " + ".join(f'{value} * max by (job_id) (tensord_training_job_state{{{JOBS},state="{name.upper()}"}})'
                       for value, (name, _) in JOB_STATES.items())
    done = f"max by (job_id) (tensord_training_steps_total{{{JOBS}}})"
    wanted = f"max by (job_id) (tensord_training_wanted_steps{{{JOBS}}})"
    saved = f"max by (job_id) (tensord_training_checkpoint_step{{{JOBS}}})"
    return [
        states("Jobs", "", query(state, "{{job_id}}"), JOB_STATES),
        bars("Progress", "Steps made, of those to make.", "percentunit", now(f"{done} / ({wanted} > 0)", "{{job_id}}"),
             most=1),
        lines("Loss", "Mean of the last steps.", "short", of("tensord_training_loss"), log=True),
        lines("Evaluation", "Metrics of the last evaluation.", "short",
              query(f"max by (job_id, metric) (tensord_training_metric{{{JOBS}}})", "{{job_id}} {{metric}}")),
        lines("Samples a second", "", "short", of("tensord_training_samples_per_second")),
        lines("Learning rate", "Of the first group of parameters.", "sci", of("tensord_training_learning_rate")),
        lines("Gradient", "Norm of all gradients, before clipping.", "short", of("tensord_training_gradient_norm")),
        lines("Time left", "Below 0 while it is not known.", "s", of("tensord_training_seconds_left")),
        lines("Steps since the last checkpoint", "What a crash would cost.", "short",
              query(f"{done} - {saved}", "{{job_id}}")),
        lines("Memory", "Tensors of the job.", "bytes", of("tensord_training_memory_bytes")),
        lines("Epoch", "Passes over the data.", "short", of("tensord_training_epoch")),
    ]


ROWS = [("Overview", overview), ("Requests", requests), ("Latency", latency), ("Queues and batches", queues),
        ("Models, caches and plans", models), ("Memory", memory), ("Process", process), ("Training jobs", training),
        ("GPUs", gpus)]
