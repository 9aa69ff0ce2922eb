#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protos/inference.pb.h"
#include "server/http/compression.h"
#include "server/rest/generate_json.h"
#include "server/rest/infer_json.h"
#include "server/transport/grpc/message_bytes.h"
#include "server/transport/infer/classification.h"
#include "server/transport/infer/decode.h"
#include "server/transport/infer/encode.h"
#include "tests/server/fake_models.h"

// Each kind of request and response, of any size: the bytes or tensors, and how the daemon processes them.
namespace tensord::server::charge_test {

// Counts memory while a request is parsed or a response is written.
struct Counter {
  RequestLimits limits{0, 0};
  RequestLimits::Admission admission = limits.charge(0);
  CallCharge charge{admission, [] { return false; }};
  HttpMemoryQuota quota = [this](uint64_t bytes) {
    return std::make_shared<const RequestLimits::Admission>(limits.charge(bytes));
  };
};

// For a given size: makes the incoming bytes, or the outgoing tensor, then processes them as the daemon does, and
// returns what the daemon keeps.
struct Kind {
  const char* name;
  std::function<std::shared_ptr<void>(size_t size)> make;
  std::function<std::shared_ptr<void>(void* made, Counter& counter)> run;
};

template <class T>
inline std::shared_ptr<void> keep(T value) {
  return std::make_shared<T>(std::move(value));
}

inline std::string times(size_t count, std::string_view text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

inline std::string numbered(size_t count, const std::function<std::string(const std::string& number)>& text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    all += (i == 0 ? "" : ",") + text(number);
  }
  return all;
}

inline WireMessage wire_of(const std::string& bytes) {
  WireMessage wire;
  wire.add_piece({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return wire;
}

// Reads an infer request as RestInfer does, including its inputs; a refusal is also a valid result.
inline std::shared_ptr<void> read_infer(void* made, Counter& counter) {
  const std::string& json = *static_cast<std::string*>(made);
  struct Kept {
    WireMessage wire;
    RestRequest request;
    std::vector<InferTensor> inputs;
  };
  auto kept = std::make_shared<Kept>();
  kept->wire = wire_of(json);
  try {
    kept->request = parse_infer_json("m", "", json, kept->wire, json.size(), 0, counter.charge);
    for (const InferMessage::Input& input : kept->request.message.inputs) {
      InferTensor& out = kept->inputs.emplace_back();
      out.datatype = *parse_datatype(input.datatype);
      out.shape = input.shape;
      input.fill(checked_numel(out.shape), out);
    }
  } catch (const Error&) {
  }
  return kept;
}

inline std::shared_ptr<void> read_generate(void* made, Counter& counter) {
  const std::string& json = *static_cast<std::string*>(made);
  static const Signature signature = [] {
    Signature out = fixtures::signature_of({"x"}, {"OUTPUT__0"});
    out.inputs[0].datatype = DataType::kInt64;
    out.inputs[0].shape = Dims{-1};
    return out;
  }();
  try {
    auto request = std::make_shared<RestRequest>(parse_generate_json({"m", "", signature}, json, 0, counter.charge));
    auto inputs = std::make_shared<std::vector<InferTensor>>();
    for (const InferMessage::Input& input : request->message.inputs) {
      InferTensor& out = inputs->emplace_back();
      out.datatype = *parse_datatype(input.datatype);
      out.shape = input.shape;
      input.fill(checked_numel(out.shape), out);
    }
    return keep(std::make_pair(request, inputs));
  } catch (const Error&) {
    return nullptr;
  }
}

inline std::shared_ptr<void> read_grpc(void* made, Counter& counter) {
  const WireMessage wire = wire_of(*static_cast<std::string*>(made));
  static const Signature signature = [] {
    Signature out = fixtures::signature_of({"x"}, {"OUTPUT__0"});
    out.inputs[0].datatype.reset();
    return out;
  }();
  try {
    auto message = std::make_shared<InferMessage>(parse_infer_message(wire, &counter.admission));
    auto inputs =
        std::make_shared<DecodedInputs>(decode_inputs(*message, wire, signature, {.admission = &counter.admission}));
    return keep(std::make_pair(message, inputs));
  } catch (const Error&) {
    return nullptr;
  }
}

// With an unknown field behind it, so that messages of all sizes are above kSmallRequestBytes: those below are read
// once, the others twice, the first time to charge for them.
inline std::string with_padding(const std::string& message) {
  static_assert(kSmallRequestBytes == 512);
  return message + "\xc2\x3e\x81\x04" + std::string(513, 'x');  // field 1000, 513 bytes
}

template <class Message>
inline std::shared_ptr<void> read_unary(void* made, Counter& counter) {
  const std::string& text = *static_cast<std::string*>(made);
  const grpc::Slice slice(text.data(), text.size(), grpc::Slice::STATIC_SLICE);
  grpc::ByteBuffer bytes(&slice, 1);
  auto message = std::make_shared<Message>();
  read_message(bytes, counter.limits, counter.admission, *message);
  return message;
}

inline Kind json_kind(const char* name, const std::function<std::string(size_t size)>& json,
                      std::shared_ptr<void> (*read)(void*, Counter&) = read_infer) {
  return {name, [json](size_t size) { return keep(json(size)); }, read};
}

inline std::string one_input(const std::string& datatype, size_t count, const std::string& data) {
  return R"({"inputs":[{"name":"x","datatype":")" + datatype + R"(","shape":[)" + std::to_string(count) +
         R"(],"data":[)" + data + "]}]}";
}

inline std::vector<Kind> json_kinds() {
  const auto list = [](size_t size, const std::string& element) { return times(size - 1, element + ",") + element; };
  const std::string head = R"({"inputs":[{"name":"x","datatype":"BOOL","shape":[1],"data":[1])";
  return {
      json_kind("JSON: numbers of FP64", [=](size_t n) { return one_input("FP64", n, list(n, "1")); }),
      json_kind("JSON: numbers of UINT32", [=](size_t n) { return one_input("UINT32", n, list(n, "1")); }),
      json_kind("JSON: long numbers", [=](size_t n) { return one_input("FP64", 1, "0." + times(n, "0") + "1"); }),
      json_kind("JSON: empty texts", [=](size_t n) { return one_input("BYTES", n, list(n, "\"\"")); }),
      json_kind("JSON: one text", [=](size_t n) { return one_input("BYTES", 1, '"' + times(n, "\\u00e9") + '"'); }),
      json_kind("JSON: lists in lists", [=](size_t n) { return one_input("FP32", 0, list(n, "[[],[]]")); }),
      json_kind("JSON: unknown members",
                [=](size_t n) {
                  return head + "}],\"more\":{" + numbered(n, [](const std::string& i) { return '"' + i + "\":[]"; }) +
                         "}}";
                }),
      json_kind("JSON: parameters",
                [=](size_t n) {
                  return head + "}],\"parameters\":{" +
                         numbered(n,
                                  [](const std::string& i) { return '"' + i + "\":\"some text of thirty letters\""; }) +
                         "}}";
                }),
      json_kind("JSON: parameters of inputs",
                [=](size_t n) {
                  return R"({"inputs":[)" +
                         list(n,
                              R"({"name":"x","datatype":"BOOL","shape":[1],"data":[1],"parameters":{"a":1,"b":2}})") +
                         "]}";
                }),
      json_kind("JSON: one parameter again and again",
                [=](size_t n) {
                  return head + "}],\"parameters\":{" + list(n, R"("a":"0123456789012345678901234")") + "}}";
                }),
      json_kind("JSON: outputs",
                [=](size_t n) {
                  return head + "}],\"outputs\":[" +
                         numbered(n, [](const std::string& i) { return R"({"name":")" + i + R"("})"; }) + "]}";
                }),
      json_kind(
          "generate: elements", [=](size_t n) { return "{\"x\":[" + list(n, "1") + "]}"; }, read_generate),
      json_kind(
          "generate: one input again and again", [=](size_t n) { return "{" + list(n, "\"x\":1") + "}"; },
          read_generate),
      json_kind(
          "generate: parameters",
          [=](size_t n) {
            return "{" +
                   numbered(n, [](const std::string& i) { return '"' + i + "\":\"some text of thirty letters\""; }) +
                   "}";
          },
          read_generate),
  };
}

inline std::vector<Kind> grpc_kinds() {
  const auto infer = [](const char* name, const std::function<void(size_t, inference::ModelInferRequest&)>& fill) {
    return Kind{name,
                [fill](size_t size) {
                  inference::ModelInferRequest request;
                  fill(size, request);
                  return keep(request.SerializeAsString());
                },
                read_grpc};
  };
  const auto input = [](inference::ModelInferRequest& request, const char* datatype, size_t count) {
    auto* out = request.add_inputs();
    out->set_name("x");
    out->set_datatype(datatype);
    out->add_shape(static_cast<int64_t>(count));
    return out;
  };
  std::vector<Kind> kinds{
      infer("gRPC: empty inputs",
            [](size_t n, auto& request) {
              while (n-- > 0) request.add_inputs();
            }),
      infer("gRPC: empty outputs",
            [](size_t n, auto& request) {
              while (n-- > 0) request.add_outputs();
            }),
      infer("gRPC: parameters",
            [](size_t n, auto& request) {
              while (n-- > 0)
                (*request.mutable_parameters())[std::to_string(n)].set_string_param("thirty letters of a parameter");
            }),
      infer("gRPC: numbers of INT64",
            [=](size_t n, auto& request) {
              auto* contents = input(request, "INT64", n)->mutable_contents();
              for (size_t i = 0; i < n; ++i) contents->add_int64_contents(1);
            }),
      infer("gRPC: numbers of UINT32, raw",
            [=](size_t n, auto& request) {
              input(request, "UINT32", n);
              request.add_raw_input_contents(std::string(4 * n, '\0'));
            }),
      infer("gRPC: unaligned",
            [=](size_t n, auto& request) {
              input(request, "BOOL", n);
              request.add_raw_input_contents(std::string(n, '\1'));
            }),
  };
  const auto unary = [&](const char* name, auto message, const auto& fill) {
    using Message = decltype(message);
    kinds.push_back({name,
                     [fill](size_t size) {
                       Message out;
                       fill(size, out);
                       return keep(with_padding(out.SerializeAsString()));
                     },
                     read_unary<Message>});
  };
  unary("gRPC: values of a setting", inference::TraceSettingRequest(), [](size_t n, auto& message) {
    auto& setting = (*message.mutable_settings())["trace_level"];
    while (n-- > 0) setting.add_value("");
  });
  unary("gRPC: settings", inference::LogSettingsRequest(), [](size_t n, auto& message) {
    while (n-- > 0) (*message.mutable_settings())[std::to_string(n)].set_bool_param(true);
  });
  unary("gRPC: files of a load", inference::RepositoryModelLoadRequest(), [](size_t n, auto& message) {
    (*message.mutable_parameters())["file:1/a"].set_bytes_param(std::string(n, 'x'));
  });
  kinds.push_back({"gRPC: unknown fields",
                   [](size_t n) { return keep(with_padding(times(n, std::string("\xf8\x07\x01\xfa\x07\x00", 6)))); },
                   read_unary<inference::ServerMetadataRequest>});
  return kinds;
}

// Writes `tensor` as the response of infer in JSON, compressed or not.
using Outputs = std::vector<InferTensor>;
inline std::shared_ptr<void> write_json(const Outputs& outputs, Counter& counter, Coding coding) {
  InferAnswer answer = encode_infer_json({"m", "1", "id", {}}, outputs, {}, {}, counter.quota, {});
  deflate_answer(coding, counter.quota, answer.answer);
  return keep(std::move(answer));
}

inline InferTensor tensor_of(DataType datatype, size_t size) {
  InferTensor out;
  out.name = "y";
  out.datatype = datatype;
  out.shape = {static_cast<int64_t>(size)};
  if (datatype == DataType::kBytes) {
    out.strings.assign(size, "\1\2\3");
  } else {
    out.tensor = Tensor::empty(out.shape, *to_dtype(datatype));
    std::memset(out.tensor.raw_data(), 0, out.tensor.size_bytes());
  }
  return out;
}

inline std::vector<Kind> answer_kinds() {
  const auto answer = [](const char* name, DataType datatype, auto write) {
    return Kind{name, [datatype](size_t size) { return keep(Outputs(1, tensor_of(datatype, size))); },
                [write](void* made, Counter& counter) -> std::shared_ptr<void> {
                  return write(*static_cast<Outputs*>(made), counter);
                }};
  };
  const auto json = [](const Outputs& outputs, Counter& counter) {
    return write_json(outputs, counter, Coding::kIdentity);
  };
  return {
      answer("answer: BOOL as JSON", DataType::kBool, json),
      answer("answer: FP64 as JSON", DataType::kFp64, json),
      answer("answer: texts as JSON", DataType::kBytes, json),
      answer("answer: BOOL as JSON, packed", DataType::kBool,
             [](const Outputs& outputs, Counter& counter) { return write_json(outputs, counter, Coding::kGzip); }),
      answer("answer: texts behind JSON", DataType::kBytes,
             [](const Outputs& outputs, Counter& counter) {
               return keep(encode_infer_json({"m", "1", "", {}}, outputs, {}, {.is_binary = true, .listed = {}},
                                             counter.quota, {}));
             }),
      answer("answer: generated", DataType::kInt64,
             [](const Outputs& outputs, Counter& counter) {
               AnswerText out(counter.quota);
               write_generated_json({"m", "1", "", {}}, outputs, counter.quota, out);
               return keep(std::move(out));
             }),
      answer("answer: texts over gRPC", DataType::kBytes,
             [](const Outputs& outputs, Counter& counter) {
               counter.admission.grow(response_bytes(outputs, {}));
               return keep(encode_response({"m", "1", "", {}}, outputs));
             }),
      answer("answer: classes", DataType::kFp32,
             [](const Outputs& outputs, Counter& counter) {
               counter.admission.grow(classes_bytes(outputs[0], 1 << 30, false));
               return keep(classify(outputs[0], 1 << 30, false, {}));
             }),
  };
}

inline std::vector<Kind> all_kinds() {
  std::vector<Kind> all = json_kinds();
  for (const auto& more : {grpc_kinds(), answer_kinds()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tensord::server::charge_test
