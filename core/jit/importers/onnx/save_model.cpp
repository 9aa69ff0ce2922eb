#include "core/jit/importers/onnx/save_model.h"

#include <climits>
#include <string_view>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/jit/importers/onnx/message_writer.h"
#include "core/jit/importers/onnx/proto.h"
#include "core/jit/importers/onnx/tensors.h"
#include "core/jit/importers/onnx/wire.h"

namespace tensord::jit::onnx {
namespace {

// Field numbers in onnx.proto.
enum : uint32_t { kModelGraph = 7, kGraphInitializer = 5, kTensorName = 8 };

std::string_view view_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The pieces of a file, without copying what is already in memory.
class Pieces {
 public:
  void view(std::string_view bytes) { add({.text = {}, .bytes = bytes}); }
  void own(std::string bytes) { add({.text = std::move(bytes), .bytes = {}}); }
  void keep(const Tensor& tensor) {
    add({.text = {}, .bytes = {static_cast<const char*>(tensor.raw_data()), tensor.size_bytes()}, .tensor = tensor});
  }
  size_t size() const { return size_; }
  void write_to(AtomicFile& file) const {
    for (const Piece& piece : pieces_) file.write(piece.text.empty() ? piece.bytes : std::string_view(piece.text));
  }

 private:
  struct Piece {
    std::string text;
    std::string_view bytes;  // if there is no text
    Tensor tensor = {};      // owner of the bytes
  };
  void add(Piece piece) {
    size_ += piece.text.empty() ? piece.bytes.size() : piece.text.size();
    pieces_.push_back(std::move(piece));
  }
  std::vector<Piece> pieces_;
  size_t size_ = 0;
};

std::string name_of_tensor(std::span<const uint8_t> tensor) {
  std::string name;
  for (Wire wire(tensor, "TensorProto"); wire.next();) {
    if (wire.field() == kTensorName) name = wire.text();
  }
  return name;
}

void add_initializer(const std::string& name, const Tensor& value, Pieces& pieces) {
  const Tensor tensor = value.contiguous();
  const std::string head = tensor_head(name, tensor);
  MessageWriter field;
  field.begin_bytes(kGraphInitializer, head.size() + tensor.size_bytes());
  pieces.own(field.bytes() + head);
  if (tensor.size_bytes() > 0) pieces.keep(tensor);
}

Pieces graph_pieces(std::span<const uint8_t> graph, const std::map<std::string, Tensor>& initializers) {
  Pieces pieces;
  for (Wire wire(graph, "GraphProto"); wire.next();) {
    if (wire.field() == kGraphInitializer) {
      const auto found = initializers.find(name_of_tensor(wire.bytes()));
      if (found != initializers.end()) {
        add_initializer(found->first, found->second, pieces);
        continue;
      }
    }
    pieces.view(view_of(wire.whole()));
  }
  return pieces;
}

}  // namespace

void save_model(const std::string& path, std::span<const uint8_t> model,
                const std::map<std::string, Tensor>& initializers) {
  AtomicFile file(path);
  size_t size = 0;
  for (Wire wire(model, "ModelProto"); wire.next();) {
    if (wire.field() != kModelGraph) {
      file.write(view_of(wire.whole()));
      continue;
    }
    const Pieces graph = graph_pieces(wire.bytes(), initializers);
    size += graph.size();
    if (size > INT_MAX) fail(ErrorCode::kResourceExhausted, path, ": ", size, " bytes are too many for an ONNX file");
    MessageWriter head;
    head.begin_bytes(kModelGraph, graph.size());
    file.write(head.bytes());
    graph.write_to(file);
  }
  file.commit();
}

}  // namespace tensord::jit::onnx
