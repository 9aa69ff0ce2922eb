"""Every call of every service with every kind of token and header: a call in the protocol without a row here fails."""

import os
import tempfile
import unittest

import grpc

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, pb, training  # makes the stubs

import health_pb2 as health  # noqa: E402
import hosts_pb2 as hosts  # noqa: E402
import reflection_v1_pb2 as reflection  # noqa: E402
import reflection_v1alpha_pb2 as reflection_alpha  # noqa: E402

CODE = grpc.StatusCode
OK, INVALID, UNIMPLEMENTED, NOT_FOUND = CODE.OK, CODE.INVALID_ARGUMENT, CODE.UNIMPLEMENTED, CODE.NOT_FOUND

# By service and call: the group that permits it, and the status of an empty request with the right token.
ROWS = {
    "inference.GRPCInferenceService": {
        "ServerLive": ("health", OK),
        "ServerReady": ("health", OK),
        "ModelReady": ("health", OK),
        "ServerMetadata": ("metadata", OK),
        "ModelMetadata": ("metadata", NOT_FOUND),
        "ModelInfer": ("inference", NOT_FOUND),
        "ModelStreamInfer": ("inference", OK),
        "ModelConfig": ("model-config", NOT_FOUND),
        "ModelStatistics": ("statistics", OK),
        "RepositoryIndex": ("model-repository", OK),
        "RepositoryModelLoad": ("model-repository", INVALID),
        "RepositoryModelUnload": ("model-repository", INVALID),
        "SystemSharedMemoryStatus": ("shared-memory", OK),
        "SystemSharedMemoryRegister": ("shared-memory", UNIMPLEMENTED),
        "SystemSharedMemoryUnregister": ("shared-memory", UNIMPLEMENTED),
        "CudaSharedMemoryStatus": ("shared-memory", OK),
        "CudaSharedMemoryRegister": ("shared-memory", UNIMPLEMENTED),
        "CudaSharedMemoryUnregister": ("shared-memory", UNIMPLEMENTED),
        "TraceSetting": ("trace", OK),
        "LogSettings": ("logging", OK),
    },
    "grpc.health.v1.Health": {
        "Check": ("health", OK),
        "Watch": ("health", OK),
    },
    "grpc.reflection.v1.ServerReflection": {"ServerReflectionInfo": ("metadata", OK)},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": ("metadata", OK)},
    "tensord.training.v1.TrainingService": {
        "CreateJob": ("training", INVALID),
        "GetJob": ("training", NOT_FOUND),
        "ListJobs": ("training", OK),
        "WatchJob": ("training", NOT_FOUND),
        "PauseJob": ("training", NOT_FOUND),
        "ResumeJob": ("training", NOT_FOUND),
        "CancelJob": ("training", NOT_FOUND),
        "FinishJob": ("training", NOT_FOUND),
        "DeleteJob": ("training", NOT_FOUND),
        "StreamData": ("training", NOT_FOUND),
        "UploadModel": ("training", CODE.DATA_LOSS),
        "UploadData": ("training", INVALID),
        "DownloadModel": ("training", NOT_FOUND),
        "Rollback": ("training", NOT_FOUND),
        "ListHosts": ("training", OK),
    },
    "tensord.hosts.v1.HostService": {
        "Join": ("training-hosts", INVALID),
        "FetchFile": ("training-hosts", NOT_FOUND),
    },
}
GROUPS = sorted({group for calls in ROWS.values() for group, _ in calls.values()})


def calls_of_the_protocol():
    out = {}
    for module in (pb, health, reflection, reflection_alpha, training, hosts):
        for service in module.DESCRIPTOR.services_by_name.values():
            out[service.full_name] = {method.name for method in service.methods}
    return out


def rows():
    for service, calls in ROWS.items():
        for call, (group, answer) in calls.items():
            yield f"/{service}/{call}", group, answer


def token(group):
    return ("authorization", f"Bearer token-of-{group}")


def header(group, value=None):
    return (f"triton-grpc-protocol-{group}", value or f"secret-of-{group}")


def other(group):
    return next(one for one in GROUPS if one != group)


class AccessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.models = os.path.join(cls.folder.name, "models")
        serve_models.save(serve_models.MODELS["identity"](), cls.models, "identity")
        cls.tokens = os.path.join(cls.folder.name, "tokens")
        with open(cls.tokens, "w") as out:
            out.writelines(f"{group} token-of-{group}\n" for group in GROUPS)
        cls.restricted = [flag for group in GROUPS
                          for flag in ("--grpc-restricted-protocol", f"{group}:{group}=secret-of-{group}")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def daemon(self, *flags):
        jobs = tempfile.mkdtemp(dir=self.folder.name)
        return Daemon(self.models, "--training-dir", jobs, "--model-control-mode", "explicit", "--load-model", "*",
                      *flags)

    @staticmethod
    def code_of(channel, path, *metadata):
        """The status of one empty request. Every kind of call looks the same on the wire; the first response is
        enough."""
        call = channel.stream_stream(path)(iter([b""]), metadata=metadata, timeout=300)
        try:
            for _ in call:
                call.cancel()
                return OK
            return call.code()
        except grpc.RpcError as error:
            return error.code()

    def check(self, channel, *columns):
        """A column: its name, the metadata for a group, and the status for all but the right ones, or None."""
        wrong = []
        for path, group, answer in rows():
            for name, metadata_of, refusal in columns:
                wanted = refusal(group) or answer
                got = self.code_of(channel, path, *metadata_of(group))
                if got != wanted:
                    wrong.append(f"{path} with {name}: {got}, not {wanted}")
        self.assertEqual(wrong, [])

    def test_every_call_has_a_row(self):
        self.assertEqual({service: set(calls) for service, calls in ROWS.items()}, calls_of_the_protocol())

    def test_every_service_that_is_served_has_rows(self):
        with self.daemon() as daemon:
            ask = reflection.ServerReflectionRequest(list_services="*").SerializeToString()
            path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            answer = next(daemon.channel.stream_stream(path)(iter([ask]), timeout=300))
        listed = reflection.ServerReflectionResponse.FromString(answer).list_services_response.service
        self.assertEqual({service.name for service in listed}, set(ROWS))

    def test_tokens(self):
        def unless_health(code):
            return lambda group: None if group == "health" else code

        with self.daemon("--access-tokens", self.tokens) as daemon:
            self.check(daemon.channel,
                       ("no token", lambda group: (), unless_health(CODE.UNAUTHENTICATED)),
                       ("a wrong token", lambda group: (("authorization", "Bearer guessed"),),
                        unless_health(CODE.UNAUTHENTICATED)),
                       ("the token of another group", lambda group: (token(other(group)),),
                        unless_health(CODE.PERMISSION_DENIED)),
                       ("its token", lambda group: (token(group),), lambda group: None))

    def test_restricted_groups(self):
        with self.daemon(*self.restricted) as daemon:
            denied = lambda group: CODE.PERMISSION_DENIED  # noqa: E731
            self.check(daemon.channel,
                       ("no header", lambda group: (), denied),
                       ("a wrong value", lambda group: (header(group, "guessed"),), denied),
                       ("the header of another group", lambda group: (header(other(group)),), denied),
                       ("its header", lambda group: (header(group),), lambda group: None))

    def test_restricted_groups_and_tokens(self):
        """Only one of the two permits nothing."""
        with self.daemon("--access-tokens", self.tokens, *self.restricted) as daemon:
            self.check(daemon.channel,
                       ("neither", lambda group: (), lambda group: CODE.PERMISSION_DENIED),
                       ("the header alone", lambda group: (header(group),),
                        lambda group: None if group == "health" else CODE.UNAUTHENTICATED),
                       ("the token alone", lambda group: (token(group),), lambda group: CODE.PERMISSION_DENIED),
                       ("the header, the token of another group", lambda group: (header(group), token(other(group))),
                        lambda group: None if group == "health" else CODE.PERMISSION_DENIED),
                       ("both", lambda group: (header(group), token(group)), lambda group: None))


if __name__ == "__main__":
    unittest.main()
