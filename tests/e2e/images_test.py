"""Models that take image files: by HTTP, gRPC and the command line, compared with Pillow and torchvision; and what they refuse."""

import http.client
import io
import json
import os
import struct
import subprocess
import tempfile
import time
import unittest
import zlib
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import transforms

from tests.e2e import serve_models
from tests.e2e.daemon import BINARY, Daemon, RpcAssertions, request

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PREPARE = transforms.Compose([transforms.Resize(40), transforms.CenterCrop((32, 24)), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


def parameters(**values):
    return "".join(f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n' for key, value in values.items())


IMAGENET = {"image_mean": "0.485, 0.456, 0.406", "image_std": "0.229,0.224,0.225"}
SIZED = {"image_resize_size": "40", "image_crop_size": "32,24", **IMAGENET}
STRINGS = 'input [ { name: "x" data_type: TYPE_STRING dims: [ %s ] } ]\n'
CONFIGS = {
    "plain": parameters(**SIZED),
    "listed": STRINGS % "-1, 1" + parameters(image_input="x", **SIZED),
    "batched": "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 20000 }\n" + STRINGS % "1" + parameters(**SIZED),
    "open": parameters(image_interpolation="bicubic", image_resize_size="20", **IMAGENET),
    "bytes": parameters(image_layout="HWC", image_datatype="UINT8", image_channel_order="BGR"),
    "auto": parameters(precision="auto", **SIZED) + 'model_warmup [ { name: "one" batch_size: 1 inputs { key: "x" value: '
            '{ data_type: TYPE_STRING dims: [ 1, 1 ] zero_data: true } } } ]\n',
    "small": parameters(image_max_pixels="5000", **SIZED),
    "auto": parameters(precision="auto", **SIZED),
    "numbers": 'input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]\n',
}
ENSEMBLE = """platform: "ensemble"
ensemble_scheduling { step [ { model_name: "plain" model_version: -1 input_map { key: "x" value: "photo" }
  output_map { key: "OUTPUT__0" value: "pixels" } } ] }
output [ { name: "pixels" data_type: TYPE_FP32 dims: [ -1, 3, 32, 24 ] } ]
"""
# Of models that are not served: why.
REFUSED = {
    "unknown": (parameters(image_sizes="3"), "parameter image_sizes is not known"),
    "mean": (parameters(image_mean="a,b,c"), "parameter image_mean must be one number, or one for each channel"),
    "zero": (parameters(image_std="0"), "std: has a zero"),
    "side": (parameters(image_crop_size="0"), "parameter image_crop_size must be a size"),
    "filter": (parameters(image_interpolation="cubic"), "parameter image_interpolation must be one of nearest, box"),
    "other": (parameters(image_input="y"), "parameter image_input: the model has no input 'y'"),
    "floats": (CONFIGS["numbers"] + parameters(**SIZED), "it must have data_type TYPE_STRING"),
    "layout": ("max_batch_size: 2\n" + parameters(image_layout="CHW"), "parameter image_layout: CHW and HWC"),
    "sizes": ("max_batch_size: 2\ndynamic_batching {}\n" + parameters(image_resize_size="9"), "images of one size only share a batch"),
    "uint8": (parameters(image_datatype="UINT8", **IMAGENET), "bytes are not rescaled"),
}


class Image3(nn.Module):
    """Returns its input, so that a test sees the numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 1


def picture(height=57, width=83, seed=0):
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[:height, :width]
    planes = [128 + 120 * numpy.sin(x / 5 + i) * numpy.cos(y / (4 + i)) + random.normal(0, 4, x.shape) for i in range(3)]
    return Image.fromarray(numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8))


def encoded(image, kind="JPEG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def prepared(data):
    return PREPARE(Image.open(io.BytesIO(data)).convert("RGB")).numpy()


def png_bomb(side):
    """A PNG whose header promises side x side pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(bytes(9))) + \
        chunk(b"IEND", b"")


def raw(files):
    return b"".join(struct.pack("<I", len(file)) + file for file in files)


class ImagesTest(RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        configs = {**CONFIGS, **{name: config for name, (config, _) in REFUSED.items()}}
        for name, config in configs.items():
            serve_models.save(Image3(), cls.folder.name, name)
            with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as file:
                file.write(config)
        os.makedirs(os.path.join(cls.folder.name, "album", "1"))
        with open(os.path.join(cls.folder.name, "album", "config.pbtxt"), "w") as file:
            file.write(ENSEMBLE)
        cls.daemon = Daemon(cls.folder.name, "--allow-http", "true", "--http-port", "0", "--strict-readiness", "false",
                            "--client-memory-quota", "64MB")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def post(self, model, body, headers):
        host, port = self.daemon.ready["http"].rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            connection.request("POST", f"/v2/models/{model}/infer", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def post_image(self, model, body, kind="image/jpeg"):
        """The status, and the tensor of the binary answer or the error."""
        status, data, headers = self.post(model, body, {"Content-Type": kind, "Accept": "application/octet-stream"})
        if status != 200:
            return status, json.loads(data)["error"]
        length = int(headers["Inference-Header-Content-Length"])
        output = json.loads(data[:length])["outputs"][0]
        kinds = {"FP32": numpy.float32, "UINT8": numpy.uint8}
        return status, numpy.frombuffer(data[length:], kinds[output["datatype"]]).reshape(output["shape"])

    def infer(self, model, files, shape=None, name="x"):
        answer = self.daemon.stub.ModelInfer(request(model, [(name, "BYTES", shape or [len(files), 1], raw(files))]))
        return numpy.frombuffer(answer.raw_output_contents[0], numpy.float32).reshape(list(answer.outputs[0].shape))

    def test_curl_and_grpc_have_the_numbers_of_torchvision(self):
        for model in ("plain", "listed", "batched"):
            for data, kind in ((encoded(picture()), "image/jpeg"), (encoded(picture(), "PNG"), "Image/PNG"),
                               (encoded(picture(30, 21).convert("L")), "image/jpeg"), (encoded(picture().quantize(40), "PNG"), "image/png")):
                with self.subTest(model=model, kind=kind):
                    status, got = self.post_image(model, data, kind)
                    self.assertEqual(status, 200, got)
                    numpy.testing.assert_array_equal(got, prepared(data)[None])
                    numpy.testing.assert_array_equal(self.infer(model, [data]), got)

    def test_curl_itself(self):
        data = encoded(picture())
        path = os.path.join(self.folder.name, "cat.jpg")
        with open(path, "wb") as file:
            file.write(data)
        answer = subprocess.run(["curl", "-s", "--data-binary", "@" + path, "-H", "Content-Type: image/jpeg",
                                 f"http://{self.daemon.ready['http']}/v2/models/plain/infer"], capture_output=True, check=True).stdout
        output = json.loads(answer)["outputs"][0]
        self.assertEqual((output["datatype"], output["shape"]), ("FP32", [1, 3, 32, 24]))
        numpy.testing.assert_array_equal(numpy.float32(output["data"]).reshape(3, 32, 24), prepared(data))

    def test_many_images_of_a_request(self):
        files = [encoded(picture(40 + i, 60 - i, i)) for i in range(5)]
        expected = numpy.stack([prepared(file) for file in files])
        for model in ("plain", "batched"):
            numpy.testing.assert_array_equal(self.infer(model, files), expected)
        numpy.testing.assert_array_equal(self.infer("album", files, name="photo"), expected)

    def test_requests_share_a_batch_and_a_bad_image_fails_alone(self):
        files = [encoded(picture(seed=i)) for i in range(7)]
        files.insert(3, files[0][:len(files[0]) // 2])
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda file: self.post_image("batched", file), files))
        for i, (file, (status, got)) in enumerate(zip(files, answers)):
            if i == 3:
                self.assertEqual((status, got), (400, "input 'x', image 0: damaged JPEG: the image is truncated"))
            else:
                numpy.testing.assert_array_equal(got, prepared(file)[None])

    def test_sizes_that_depend_on_the_image(self):
        data = encoded(picture(30, 70))
        prepare = transforms.Compose([transforms.Resize(20, transforms.InterpolationMode.BICUBIC), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
        numpy.testing.assert_array_equal(self.infer("open", [data]), prepare(Image.open(io.BytesIO(data))).numpy()[None])
        self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, "image 1: is float32[3, 20, 40]", self.infer, "open", [data, encoded(picture(30, 60))])

    def test_bytes_without_a_batch(self):
        data = encoded(picture(), "PNG")
        status, got = self.post_image("bytes", data, "image/png")
        self.assertEqual(status, 200, got)
        numpy.testing.assert_array_equal(got, numpy.asarray(picture())[..., ::-1])

    def test_a_precision_that_is_chosen(self):
        config = self.daemon.stub.ModelConfig(self.message("ModelConfigRequest", name="auto")).config
        self.assertIn(config.parameters["chosen_precision"].string_value, ("f32", "bf16", "int8"))

    def test_metadata_and_command_line(self):
        metadata = self.daemon.stub.ModelMetadata(self.message("ModelMetadataRequest", name="batched"))
        self.assertEqual([(i.name, i.datatype, list(i.shape)) for i in metadata.inputs], [("x", "BYTES", [-1, 1])])
        path = os.path.join(self.folder.name, "dog.png")
        with open(path, "wb") as file:
            file.write(encoded(picture(), "PNG"))
        out = os.path.join(self.folder.name, "out.npy")
        subprocess.run([BINARY, "infer", "plain", "--input", "@" + path, "--save", out, "--address", self.daemon.ready["grpc"]], check=True,
                       capture_output=True)
        with open(path, "rb") as file:
            numpy.testing.assert_array_equal(numpy.load(out), prepared(file.read())[None])

    @staticmethod
    def message(kind, **fields):
        import inference_pb2
        return getattr(inference_pb2, kind)(**fields)

    def test_the_precision_that_was_chosen_is_shown(self):
        config = self.daemon.stub.ModelConfig(self.message("ModelConfigRequest", name="auto")).config
        self.assertIn(config.parameters["chosen_precision"].string_value, ("f32", "bf16", "int8"))
        self.assertEqual(self.daemon.metric("tensord_model_precision", model="auto"), 1)

    def test_what_is_no_image_is_refused(self):
        data = encoded(picture())
        for body, text in ((b"GIF89a" + data, ": is neither a JPEG nor a PNG"), (b"", "neither a JPEG"), (data[:200], "damaged JPEG"),
                           (encoded(picture(), "PNG")[:-30], "damaged PNG")):
            status, error = self.post_image("plain", body)
            self.assertEqual(status, 400, error)
            self.assertIn(text, error)
            self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, text, self.infer, "plain", [data, body] if body else [body])
        status, error = self.post_image("numbers", data)
        self.assertEqual(status, 400)
        self.assertIn("model 'numbers' has no single input that takes image files", error)
        self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, "data-type is 'FP32', but model 'plain' expects 'BYTES'", self.daemon.stub.ModelInfer,
                         request("plain", [("x", "FP32", [1, 3, 32, 24], bytes(4 * 3 * 32 * 24))]))

    def test_large_images_are_refused_by_their_header(self):
        status, error = self.post_image("plain", png_bomb(20000), "image/png")
        self.assertEqual(status, 413, error)
        self.assertIn("20000 x 20000 pixels; the limit is 50000000 pixels", error)
        self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, "20000 x 20000 pixels", self.infer, "plain", [png_bomb(20000)])
        self.assertEqual(self.post_image("small", encoded(picture(50, 100)))[0], 200)
        self.assertEqual(self.post_image("small", encoded(picture(50, 101)))[0], 413)

    def test_what_images_become_is_charged(self):
        """A file of 70 bytes becomes 9 KB, so that a message of 600 KB would take 74 MB of the quota of 64."""
        tiny = encoded(picture(1, 1), "PNG")
        self.infer("plain", [tiny] * 2500)
        self.assert_code(grpc.StatusCode.RESOURCE_EXHAUSTED, "--client-memory-quota", self.infer, "plain", [tiny] * 8000)
        deadline = time.monotonic() + 30  # its charge goes a moment after its answer
        while True:
            try:
                return self.infer("plain", [tiny] * 2500)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                self.assertLess(time.monotonic(), deadline)

    def test_wrong_parameters_are_refused_at_load(self):
        index = self.daemon.stub.RepositoryIndex(self.message("RepositoryIndexRequest"))
        reasons = {model.name: model.reason for model in index.models if model.state != "READY"}
        self.assertEqual(sorted(reasons), sorted(REFUSED))
        for name, (_, reason) in REFUSED.items():
            self.assertIn(reason, reasons[name])
        self.assertFalse([model.reason for model in index.models if model.state == "READY" and model.reason])


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
