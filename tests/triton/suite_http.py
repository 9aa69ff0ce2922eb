"""HTTP-only suites: L0_http, L0_http_fuzz, L0_https, L0_data_compression."""

import socket
import ssl
import subprocess
import threading

import kit_paths as paths
from harness import (CLIENT, MODELS, PYTHON, Server, check, copy_models, folder, methods, prepared, run_methods, run_script,
                     skip, without_huge_pages)

EXAMPLES = CLIENT / "src" / "python" / "examples"
SUITE = "L0_http"
COUNT = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"
SUMS, ZEROS = "[2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32]", "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"


def seven_models():
    """The models of docs/examples/model_repository in this test."""
    return copy_models(MODELS / "examples", folder("http_models"), "simple", "simple_int8", "simple_string", "simple_identity",
                       "simple_sequence", "simple_dyna_sequence", "simple_string_dyna_sequence")


def numbers(first=COUNT, more="", second=True):
    """The body of a request of test.sh."""
    tensor = lambda name, data: f'{{"name":"{name}","datatype":"INT32","shape":[1,16],"data":{data}}}'
    inputs = [tensor("INPUT0", first)] + ([tensor("INPUT1", COUNT)] if second else [])
    return f'{{"inputs":[{",".join(inputs)}]{more}}}'


def outputs(*binary):
    tensors = [f'{{"name":"OUTPUT{n}"' + ("" if how is None else f',"parameters":{{"binary_data":{how}}}') + "}" for n, how in enumerate(binary)]
    return f',"outputs":[{",".join(tensors)}]'


def curl(name, body, code, there=(), absent=()):
    run = subprocess.run(["curl", "-s", "-w", "\n%{http_code}", "-d", body, "localhost:8000/v2/models/simple/infer"], capture_output=True)
    answer, _, got = run.stdout.decode(errors="replace").rpartition("\n")
    good = got == str(code) and all(wanted in answer for wanted in there) and not any(wanted in answer for wanted in absent)
    check(SUITE, f"test.sh: curl: {name}", good, f"{got}: {answer}", kind="qa")


def binary_and_json():
    default = ',"parameters":{"binary_data_output":true}'
    curl("no parameters, no outputs: JSON", numbers(), 200, (SUMS, ZEROS))
    curl("one output binary, one not", numbers(more=outputs("true", "false")), 200, (ZEROS,), (SUMS,))
    curl("one output binary, one that says nothing", numbers(more=outputs("true", None)), 200, (ZEROS,), (SUMS,))
    curl("binary_data_output, no outputs", numbers(more=default), 200, (), (SUMS, ZEROS))
    curl("binary_data_output, listed outputs", numbers(more=default + outputs("false", None)), 200, (SUMS, ZEROS))
    few, many = COUNT.replace(",16]", "]"), COUNT.replace("16]", "16,17,18]")
    too_few = '{"error":"Failed to parse \'data\' field: shape does not match true shape'  # ours goes on with the input
    too_many = '{"error":"Unable to parse \'data\': Shape does not match true shape of \'data\' field'
    curl("too few elements, and the other input missing", numbers(few, second=False), 400, (too_few,))
    curl("too many elements, and the other input missing", numbers(many, second=False), 400, (too_many,))
    curl("too few elements", numbers(few), 400, (too_few,))
    curl("too many elements", numbers(many), 400, (too_many,))
    curl("the server still works", numbers(), 200, (SUMS, ZEROS))


def unit_models():
    models = copy_models(MODELS / "qa_identity", folder("http_unit") / "models", "onnx_zero_1_float32", "onnx_zero_1_object",
                         "onnx_zero_1_float16", "onnx_zero_3_float32")
    config = (models / "onnx_zero_1_object" / "config.pbtxt").read_text()
    paths.renamed(models, "onnx_zero_1_object", "onnx_zero_1_object_1_element")
    path = models / "onnx_zero_1_object_1_element" / "config.pbtxt"
    path.write_text(path.read_text().replace("-1", "1", 1))
    assert path.read_text() != config
    paths.renamed(models, "onnx_zero_1_float32", "onnx_zero_1_float32_queue")
    path = models / "onnx_zero_1_float32_queue" / "config.pbtxt"
    path.write_text(path.read_text() + "\ndynamic_batching { max_queue_delay_microseconds: 1000000 preferred_batch_size: [ 8 ]\n"
                    "  default_queue_policy { max_queue_size: 1 } }\n")
    copy_models(MODELS / "examples", models, "simple_identity")
    copy_models(MODELS / "small", models, "simple_identity_int64")
    return models


def unit():
    # 2 GB in base64 in JSON: a sixteenth of them is above the limit, too.
    test = prepared("L0_http/http_test.py", folder("http_test"), [
        ("L0_http/http_test.py", r"data_length = 1 << 31\n", "data_length = 1 << 27\n"),
        ("L0_http/http_test.py", r"int_max = \(1 << 31\) - 1", "int_max = (1 << 27) - 1")])
    with Server(unit_models(), flags=["--model-control-mode", "explicit", "--load-model", "*"], name="http_unit"):
        run_methods(SUITE, test, timeout=200)


def generate():
    answers_at_once = "a script's answers come together, when it ends, and not before an error"
    # Scripts see request parameters only as inputs, so there are more inputs.
    test = prepared("L0_http/generate_endpoint_test.py", folder("generate_test"), [
        ("L0_http/generate_endpoint_test.py", "between 2 and 3", "between 2 and 5")])
    with Server(MODELS / "generate", name="generate"):
        run_methods(SUITE, test, leave_out={"GenerateEndpointTest.test_streaming": answers_at_once,
                                            "GenerateEndpointTest.test_generate_stream_response_error": answers_at_once})


def restricted(seven):
    for flags, want in (
            (["model-repository,health:k1=v1", "metadata,health:k2=v2"], "api 'health' can not be specified in multiple config groups"),
            (["model-reposit,health:k1=v1", "metadata,health:k2=v2"], "unknown restricted api 'model-reposit'")):
        with Server(seven, flags=[f"--http-restricted-api={flag}" for flag in flags], name="http_refused", wait=10) as server:
            check(SUITE, f"test.sh: the server does not start, and says: {want}", not server.up and want in server.log, server.log[-600:],
                  kind="qa")
    test = prepared("L0_http/http_restricted_api_test.py", folder("http_restricted"))
    with Server(seven, name="http_restricted", flags=["--http-restricted-api=model-repository:admin-key=admin-value",
                                                      "--http-restricted-api=inference,metadata:infer-key=infer-value"]):
        run_methods(SUITE, test, [name for name in methods(test) if name.startswith("RestrictedAPITest")])


def sizes():
    test = prepared("L0_http/http_input_size_limit_test.py", folder("http_sizes"))
    models = copy_models(MODELS / "qa_identity", folder("http_size_models"), "onnx_zero_1_float32")
    copy_models(MODELS / "examples", models, "simple_identity")
    names = methods(test)
    raised = [name for name in names if "test_large_input" in name]
    for label, flags, chosen in (("", [], [name for name in names if name not in raised]),
                                 (" [128 MB]", [f"--http-max-input-size={2**27}"], raised)):
        with Server(models, flags=flags, name="http_sizes") as server:
            run_methods(SUITE, test, chosen, env={"SERVER_PID": str(server.pid)}, label=label, timeout=500)
    for size, want in (("0", "--http-max-input-size must be greater than 0"), ("-1024", "--http-max-input-size")):
        with Server(models, flags=[f"--http-max-input-size={size}"], name="http_size", wait=10) as server:
            check(SUITE, f"test.sh: --http-max-input-size={size} is refused", not server.up and want in server.log, server.log[-400:], kind="qa")


def chunks(seven):
    # A million chunks a hundred times: twenty times prove the same.
    test = prepared("L0_http/http_request_many_chunks.py", folder("http_chunks"), [
        ("L0_http/http_request_many_chunks.py", "repeat_request_count = 100", "repeat_request_count = 20")])
    with Server(seven, flags=["--model-control-mode=explicit", "--load-model=simple"], name="http_chunks",
                before=without_huge_pages) as server:
        run_methods(SUITE, test, env={"SERVER_PID": str(server.pid)}, timeout=300)


def http():
    seven = seven_models()
    with Server(seven, flags=["--allow-client-shm", "true"], name="http"):
        binary_and_json()
        test = prepared("L0_http/python_http_aio_test.py", folder("http_aio"))
        run_methods(SUITE, test)
        run_methods(SUITE, test.parent / "http_client_plugin_test.py")
        # nginx, which checks the password, is left out: the test is that the client's plugin and header do no harm.
        auth = test.parent / "http_basic_auth_test.py"
        auth.write_text(auth.read_text().replace("localhost:8004", "localhost:8000"))
        run_methods(SUITE, auth)
        run = subprocess.run([PYTHON, EXAMPLES / "simple_http_infer_client.py", "-u", "localhost:8000/base_path", "-v"], capture_output=True,
                             text=True)
        check(SUITE, "test.sh: a base path in the URL is asked for, and not there",
              run.returncode != 0 and "POST /base_path/v2/models/simple/infer" in run.stdout, run.stdout[-400:], kind="qa")
    for name in ("cc_client_test", "simple_http_*_client (C++)"):
        skip(SUITE, f"test.sh: {name}", "programs of the C++ client, which PyPI's package does not have")
    unit()
    generate()
    restricted(seven)
    sizes()
    chunks(seven)


def fuzz():
    # Twenty paths that the parser treats alike: every seventh. Since 0.4 boofuzz continues with changes of two and more
    # fields, endlessly; Triton uses 0.3.
    test = prepared("L0_http_fuzz/fuzztest.py", folder("http_fuzz"), [
        ("L0_http_fuzz/fuzztest.py", r"for url in url_list:", "for url in url_list[::7]:"),
        ("L0_http_fuzz/fuzztest.py", r"session\.fuzz\(\)", "session.fuzz(max_depth=1)")])
    models = copy_models(MODELS / "qa_identity", folder("http_fuzz_models"), "onnx_zero_1_object")
    with Server(models, name="http_fuzz") as server:
        run_methods("L0_http_fuzz", test, timeout=1200)
        check("L0_http_fuzz", "own: the server has lived through it", server.process.poll() is None, server.log[-600:])


def compression():
    with Server(MODELS / "examples", name="compression"):
        for client in ("simple_http_infer_client.py", "simple_http_aio_infer_client.py"):
            for request in ("deflate", "gzip", ""):
                for response in ("deflate", "gzip", ""):
                    if request == response:
                        continue
                    flags = [part for flag, value in (("request", request), ("response", response)) if value
                             for part in (f"--{flag}-compression-algorithm", value)]
                    run_script("L0_data_compression", f"{client} -v {' '.join(flags)}", [PYTHON, EXAMPLES / client, "-v", *flags], kind="qa")


class TlsProxy:
    """Accepts TLS on port 443 and forwards to 8000, as nginx does in test.sh."""

    def __init__(self, certificate, key):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)

    def __enter__(self):
        self.listener = socket.create_server(("localhost", 443), backlog=16)
        threading.Thread(target=self.take, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def take(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            outside, inside = self.context.wrap_socket(client, server_side=True), socket.create_connection(("localhost", 8000))
        except OSError:
            return client.close()
        threading.Thread(target=self.pump, args=(inside, outside), daemon=True).start()
        self.pump(outside, inside)

    @staticmethod
    def pump(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def tls():
    suite, at = "L0_https", folder("https")
    sh = lambda *args: subprocess.run(args, cwd=at, check=True, capture_output=True)
    sh("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Root CA")
    (at / "ext").write_text("subjectAltName=DNS:localhost\n")
    for name in ("server", "client"):
        sh("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=localhost")
        sh("openssl", "x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile",
           "ext", "-out", f"{name}.crt")
    (at / "client2.key").write_text((at / "client.key").read_text().title())
    files = lambda key: ["--ssl", "--key-file", at / key, "--cert-file", at / "client.crt", "--ca-certs", at / "ca.crt"]
    with Server(MODELS / "examples", name="https"), TlsProxy(at / "server.crt", at / "server.key"):
        for client in ("simple_http_infer_client.py", "simple_http_aio_infer_client.py"):
            for what, flags, is_good in (("certificates", files("client.key"), True), ("--insecure", ["--ssl", "--insecure"], True),
                                         ("no TLS", [], False), ("a broken key", files("client2.key"), False)):
                run = subprocess.run([str(part) for part in (PYTHON, EXAMPLES / client, "-v", "-u", "localhost:443", *flags)],
                                     capture_output=True, text=True, timeout=60)
                check(suite, f"{client}: {what}: {'passes' if is_good else 'fails'}", (run.returncode == 0) == is_good,
                      run.stdout[-300:] + run.stderr[-600:], kind="qa")


SUITES = {"http": http, "http_fuzz": fuzz, "https": tls, "compression": compression}
