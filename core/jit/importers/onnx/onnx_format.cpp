#include "core/jit/importers/onnx/onnx_format.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <unordered_map>

#include "core/base/atomic_file.h"
#include "core/base/cancellation.h"
#include "core/base/dotted_name.h"
#include "core/base/error.h"
#include "core/jit/importers/foreign_weights.h"
#include "core/jit/importers/module_tree.h"
#include "core/jit/importers/onnx/asked_memory.h"
#include "core/jit/importers/onnx/importer.h"
#include "core/jit/importers/onnx/proto.h"
#include "core/jit/importers/onnx/save_model.h"
#include "core/jit/importers/onnx/tensors.h"
#include "core/jit/ir/refusals.h"
#include "core/tensor/grad_mode.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::jit::onnx {
namespace {

using ops::TypePtr;

constexpr int64_t kNewestIr = 14;
constexpr const char* kClass = "__onnx__.Model";

// The model's file and its external data files.
class OnnxFile final : public ModelFile {
 public:
  explicit OnnxFile(std::vector<std::shared_ptr<const MappedFile>> files) : files_(std::move(files)) {}
  void check_unchanged() const override {
    for (const auto& file : files_) file->check_unchanged();
  }
  size_t release_pages() const override {
    size_t released = 0;
    for (const auto& file : files_) released += file->release_pages();
    return released;
  }

 private:
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

class ModelReader {
 public:
  ModelReader(const std::string& path, const ReadOptions& options)
      : path_(path),
        name_(std::filesystem::path(path).filename().string()),
        file_(MappedFile::open(path, options.copies_files)),
        model_(read_model({reinterpret_cast<const uint8_t*>(file_->data()), file_->size()})),
        tensors_(file_, std::filesystem::path(path).parent_path().string(), options),
        copies_(options.copies_tensors),
        new_weights_(options.weights),
        importer_(model_, name_, tensors_, *graph_) {}

  LoadedModel read();

 private:
  void check_versions() const;
  void find_roles();
  void find_roles(const std::vector<NodeProto>& nodes);
  bool is_parameter(const TensorProto& tensor, const Tensor& value) const;
  std::string attribute_name(const std::string& name);
  void define_initializers(LoadedModel& loaded);
  void define_initializer(const std::string& name, GraphValue* value, const Tensor& known);
  void define_inputs();
  void define_outputs();
  MethodSignature signature() const;
  static TensorSignature describe(const ValueInfoProto& value);
  std::vector<const ValueInfoProto*> true_inputs() const;

  const std::string path_, name_;
  std::shared_ptr<const MappedFile> file_;
  ModelProto model_;
  TensorReader tensors_;
  const bool copies_;
  const NewWeights* new_weights_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Importer importer_;
  ModuleTree tree_{kClass};
  ops::Schema schema_;
  std::set<std::string> initializer_names_, statistics_, attribute_names_;
  bool has_external_four_bits_ = false;
  std::map<std::string, GraphValue*> optional_inputs_;          // those that are initializers too
  std::unordered_map<std::string, int64_t> attribute_numbers_;  // last number used for each attribute name
  std::map<std::string, std::string> attributes_;               // attribute names of the object, by initializer
  std::map<std::string, Tensor> external_constants_;            // initializers
};

void ModelReader::check_versions() const {
  if (model_.ir_version > kNewestIr) {
    fail(ErrorCode::kUnimplemented, "IR version ", model_.ir_version, " is newer than ", kNewestIr,
         ", the newest that is known");
  }
}

// Running statistics are buffers, not parameters.
void ModelReader::find_roles(const std::vector<NodeProto>& nodes) {
  for (const NodeProto& node : nodes) {
    if (node.op_type != "BatchNormalization") continue;
    for (size_t i = 3; i < node.inputs.size(); ++i) statistics_.insert(node.inputs[i]);
  }
}

void ModelReader::find_roles() {
  const auto add = [this](const std::string& name) {
    if (!initializer_names_.insert(name).second) fail(ErrorCode::kDataLoss, "initializer '", name, "' appears twice");
  };
  for (const TensorProto& tensor : model_.graph.initializers) add(tensor.name);
  for (const SparseTensorProto& tensor : model_.graph.sparse_initializers) add(tensor.values.name);
  find_roles(model_.graph.nodes);
}

// Scalars and non-floating-point tensors become constants of the graph.
bool ModelReader::is_parameter(const TensorProto& tensor, const Tensor& value) const {
  return is_floating(value.dtype()) && value.numel() > 1 && !tensor.name.empty();
}

// Keeps qualified names such as "encoder.0.weight" if possible, and removes invalid parts from others.
std::string ModelReader::attribute_name(const std::string& name) {
  std::string result;
  for (const std::string& part : dotted_parts(name)) {
    result += (result.empty() ? "" : ".") + (part.empty() ? std::string("_") : part);
  }
  const auto is_taken = [&](const std::string& candidate) {
    if (attribute_names_.contains(candidate)) return true;
    // One name is a prefix path of the other.
    const auto below = attribute_names_.lower_bound(candidate + ".");
    if (below != attribute_names_.end() && below->starts_with(candidate + ".")) return true;
    for (size_t dot = candidate.find('.'); dot != std::string::npos; dot = candidate.find('.', dot + 1)) {
      if (attribute_names_.contains(candidate.substr(0, dot))) return true;
    }
    return false;
  };
  constexpr auto kMaxDots = 50;
  if (is_taken(result) || std::ranges::count(result, '.') > kMaxDots) std::ranges::replace(result, '.', '_');
  std::string candidate = result;
  for (int64_t& number = attribute_numbers_[result]; is_taken(candidate);) candidate = concat(result, "_", ++number);
  attribute_names_.insert(candidate);
  return candidate;
}

void ModelReader::define_initializers(LoadedModel& loaded) {
  Block* block = graph_->block();
  GraphValue* self = graph_->inputs().front();
  struct Weight {
    std::string name, attribute;  // in the file and in the object
    Tensor tensor;
  };
  std::vector<Weight> weights;
  for (const TensorProto& proto : model_.graph.initializers) {
    check_work_cancelled();
    const Tensor tensor = tensors_.read(proto);
    if (!is_parameter(proto, tensor)) {
      has_external_four_bits_ = has_external_four_bits_ || (proto.is_external && has_four_bits(proto.data_type));
      if (proto.is_external) external_constants_[proto.name] = tensor;
      GraphValue* value = importer_.builder().constant(tensor);
      if (has_four_bits(proto.data_type)) {
        if (optional_inputs_.contains(proto.name))
          fail(ErrorCode::kUnimplemented, "input '", proto.name, "' has 4 bits");
        importer_.mark_four_bits(value, proto.data_type);
      }
      define_initializer(proto.name, value, Tensor());
      continue;
    }
    weights.push_back({proto.name, attribute_name(proto.name), tensor});
  }
  if (new_weights_) {
    std::vector<std::pair<std::string, Tensor>> members;
    for (const Weight& weight : weights) members.emplace_back(weight.attribute, weight.tensor);
    const auto replaced = new_weights_->match(members);
    for (Weight& weight : weights) {
      const auto found = replaced.find(weight.tensor.impl());
      if (found != replaced.end()) weight.tensor = found->second;
    }
  }
  for (const Weight& weight : weights) {
    check_work_cancelled();
    const bool is_statistic = statistics_.contains(weight.name);
    attributes_[weight.name] = weight.attribute;
    tree_.add(weight.attribute, weight.tensor, is_statistic ? ModuleTree::Kind::kBuffer : ModuleTree::Kind::kParameter);
    if (!is_statistic) loaded.with_gradient.push_back(weight.tensor);
  }
  for (const Weight& weight : weights) {
    check_work_cancelled();
    define_initializer(weight.name, tree_.get(block, self, weight.attribute), weight.tensor);
  }
  for (const SparseTensorProto& proto : model_.graph.sparse_initializers) {
    define_initializer(proto.values.name, importer_.builder().constant(tensors_.read_sparse(proto)), Tensor());
  }
}

// Inputs without an initializer, then those with one, which a request may override.
//
// Before IR version 4, initializers had to be listed as inputs. Since then this makes them overridable, but some
// exporters still list all weights, which nobody intends to send.
std::vector<const ValueInfoProto*> ModelReader::true_inputs() const {
  constexpr size_t kMaxOptional = 8;
  std::vector<const ValueInfoProto*> found, optional;
  for (const ValueInfoProto& input : model_.graph.inputs) {
    (initializer_names_.contains(input.name) ? optional : found).push_back(&input);
  }
  const bool is_habit = optional.size() == initializer_names_.size() && optional.size() > kMaxOptional;
  if (model_.ir_version >= 4 && !is_habit) found.insert(found.end(), optional.begin(), optional.end());
  return found;
}

void ModelReader::define_inputs() {
  for (const ValueInfoProto* input : true_inputs()) {
    const std::string what = "input '" + input->name + "'";
    if (input->name.empty()) fail(ErrorCode::kDataLoss, "an input has no name");
    const bool is_optional = initializer_names_.contains(input->name);
    TypePtr type = to_type(input->type, what, /*checks=*/true);
    if (is_optional) type = ops::optional_type(type);
    ops::Argument argument;
    argument.name = input->name;
    argument.type = type;
    if (is_optional) argument.default_value = ops::Value();
    schema_.arguments.push_back(std::move(argument));
    GraphValue* value = graph_->block()->add_input(std::move(type), plain_name(input->name));
    if (is_optional) {
      optional_inputs_.emplace(input->name, value);
    } else {
      importer_.define(input->name, value);
      importer_.declare(value, input->type);
    }
  }
}

// Defines an initializer's name. Whether it is overridden is only known at run time.
void ModelReader::define_initializer(const std::string& name, GraphValue* value, const Tensor& known) {
  if (const auto given = optional_inputs_.find(name); given != optional_inputs_.end()) {
    importer_.define(name, importer_.given_or(given->second, value));
    return;
  }
  importer_.define(name, value);
  if (known.defined()) importer_.set_weight(value, known);
}

void ModelReader::define_outputs() {
  std::vector<GraphValue*> values;
  std::vector<std::string> names;
  for (const ValueInfoProto& output : model_.graph.outputs) {
    values.push_back(importer_.value(output.name));
    importer_.check_element_type(values.back());
    names.push_back(output.name);
  }
  if (values.empty()) fail(ErrorCode::kDataLoss, "the graph has no outputs");
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) {
    fail(ErrorCode::kDataLoss, "two outputs have the same name");
  }
  GraphValue* result = values.size() == 1 ? values.front() : importer_.builder().tuple(values, names);
  graph_->block()->add_output(result);
  schema_.returns.emplace_back();
  schema_.returns.back().type = result->type();
  if (names.size() == 1) schema_.returns.back().name = names.front();
}

// For values that are not tensors, only the name.
TensorSignature ModelReader::describe(const ValueInfoProto& value) {
  TensorSignature signature;
  signature.name = value.name;
  if (value.type.kind != TypeProto::Kind::kTensor) return signature;
  signature.dtype = find_dtype(value.type.elem_type);
  if (value.type.shape) {
    signature.shape.emplace();
    for (const auto& dimension : *value.type.shape) {
      const int64_t size = dimension.value.value_or(-1);
      signature.shape->push_back(size < 0 ? -1 : size);
      signature.size_names.push_back(size < 0 ? dimension.parameter : "");
    }
  }
  return signature;
}

MethodSignature ModelReader::signature() const {
  MethodSignature signature;
  for (const ValueInfoProto* input : true_inputs()) signature.inputs.push_back(describe(*input));
  for (const ValueInfoProto& output : model_.graph.outputs) signature.outputs.push_back(describe(output));
  return signature;
}

LoadedModel ModelReader::read() {
  check_versions();
  check_room(asked_bytes(model_, copies_), path_);
  LoadedModel loaded;
  auto library = std::make_unique<GraphLibrary>();
  graph_->block()->add_input(tree_.root_class(), "self");
  schema_.name = std::string(kClass) + ".forward";
  ops::Argument self;
  self.name = "self";
  self.type = tree_.root_class();
  schema_.arguments.push_back(std::move(self));
  find_roles();
  define_inputs();
  define_initializers(loaded);
  const size_t external_count = tensors_.external_count();
  importer_.run();
  check_none_refused();
  define_outputs();
  auto function = std::make_unique<Function>();
  function->name = schema_.name;
  function->schema = schema_;
  function->graph = std::move(graph_);
  library->add_method(kClass, "forward", std::move(function));
  loaded.object = tree_.finish(*library);
  loaded.functions = std::move(library);
  loaded.signatures.emplace("forward", signature());
  std::vector<std::shared_ptr<const MappedFile>> files{file_};
  for (const auto& [location, file] : tensors_.external_files()) files.push_back(file);
  loaded.file = std::make_shared<OnnxFile>(std::move(files));
  const bool has_sparse = std::ranges::any_of(model_.graph.sparse_initializers, [](const SparseTensorProto& tensor) {
    return tensor.values.is_external || tensor.indices.is_external;
  });
  if (has_sparse || has_external_four_bits_ || tensors_.external_count() > external_count) {
    loaded.why_not_saved = "ONNX models with external data of nodes, sparse tensors or 4-bit tensors are not written";
    return loaded;
  }
  loaded.save = [file = file_, object = loaded.object, attributes = std::move(attributes_),
                 constants = std::move(external_constants_)](const std::string& target) {
    std::map<std::string, Tensor> initializers = constants;
    for (const auto& [name, attribute] : attributes) initializers[name] = tensor_at(object, attribute);
    save_model(target, {reinterpret_cast<const uint8_t*>(file->data()), file->size()}, initializers);
  };
  return loaded;
}

LoadedModel read(const std::string& path, const ReadOptions& options) {
  try {
    return ModelReader(path, options).read();
  } catch (const DiskError&) {
    throw;
  } catch (const Error& error) {
    const std::string other = error.code() == ErrorCode::kDataLoss ? describe_no_onnx(path) : "";
    if (!other.empty()) fail(ErrorCode::kUnimplemented, path, ": ", other);
    const std::string name = std::filesystem::path(path).filename().string();
    const std::string message = error.what();
    if (message.starts_with(name) || message.starts_with(path)) throw;
    throw Error(error.code(), path + ": " + message);
  }
}

// A protobuf message does not identify itself: the file name decides, or a first field that is typical of a ModelProto,
// the IR version in one byte.
bool probe(const std::string& path) {
  if (std::filesystem::path(path).extension() == ".onnx") return true;
  std::ifstream file(path, std::ios::binary);
  char head[3] = {};
  return file.read(head, sizeof head) && head[0] == 8 && head[1] >= 3 && head[1] <= 64 &&
         (head[2] == 0x12 || head[2] == 0x3a);
}

}  // namespace

const ModelFormat kOnnxFormat{"ONNX model", "onnxruntime_onnx", "model.onnx", probe, read};

}  // namespace tensord::jit::onnx
