"""gRPC's reflection client: finds and calls the service and its messages without a .proto file."""

import unittest

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.e2e.clients import example_server
from tests.e2e.clients.example_server import WAIT_S

TWENTY = {
    "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer", "ModelStreamInfer",
    "ModelConfig", "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload",
    "SystemSharedMemoryStatus", "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister", "TraceSetting", "LogSettings"}


class ReflectionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = example_server.start()
        cls.channel = grpc.insecure_channel(cls.daemon.ready["grpc"])
        cls.database = ProtoReflectionDescriptorDatabase(cls.channel)
        cls.pool = DescriptorPool(cls.database)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.daemon.__exit__()

    def test_services(self):
        services = set(self.database.get_services())
        self.assertLessEqual({"inference.GRPCInferenceService", "grpc.health.v1.Health"}, services)
        service = self.pool.FindServiceByName("inference.GRPCInferenceService")
        self.assertEqual({method.name for method in service.methods}, TWENTY)
        stream = service.FindMethodByName("ModelStreamInfer")
        self.assertTrue(stream.client_streaming and stream.server_streaming)

    def call(self, method_name, **fields):
        method = self.pool.FindServiceByName("inference.GRPCInferenceService").FindMethodByName(method_name)
        request = GetMessageClass(method.input_type)(**fields)
        response = GetMessageClass(method.output_type)
        return self.channel.unary_unary(f"/inference.GRPCInferenceService/{method_name}",
                                        request_serializer=lambda message: message.SerializeToString(),
                                        response_deserializer=response.FromString)(request, timeout=WAIT_S)

    def test_calls(self):
        self.assertTrue(self.call("ServerLive").live)
        self.assertEqual(self.call("ModelMetadata", name="simple").inputs[0].name, "INPUT0")
        self.assertEqual(self.call("ModelConfig", name="simple").config.max_batch_size, 8)


if __name__ == "__main__":
    unittest.main()
