#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/jit/ir/graph.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Brings what a model's file says of the host, or of the device that it was written on, to one other device: tensors of
// its objects, constants of its graphs, and the devices that its code names or leaves open. A tensor is copied once for
// all its holders; tensors of objects that share memory still do. Thread-safe.
class Placement {
 public:
  // What values were before, where a list is given for that.
  using Replaced = std::vector<std::pair<ops::Value*, ops::Value>>;
  explicit Placement(Device device, Replaced* replaced = nullptr) : device_(device), replaced_(replaced) {}

  // Throws Error{kUnimplemented} that names a tensor without strides (quantized, sparse).
  void place_objects(const ops::ObjectPtr& object);
  void place_tensors(std::vector<Tensor>& tensors);
  // REQUIRES: no other thread uses the graph.
  void place_graph(Graph& graph);
  // Gives the tensors that were read from the file the values of those on the device, for what writes the file again.
  // Throws Error{kUnimplemented} where they are the file's memory.
  void bring_back();

 private:
  struct Copied {
    Tensor given;  // kept, so that its address stays its own
    Tensor placed;
  };

  bool is_elsewhere(const Tensor& tensor) const { return !tensor.is_meta() && tensor.device() != device_; }
  void replace(ops::Value& value, ops::Value by);
  void place_value(ops::Value& value, const std::string& name, int depth);
  ops::Value rebuilt(const ops::Value& value, int depth);
  ops::Value placed(const ops::Value& value, const std::string& name);
  Tensor placed(const Tensor& tensor);
  void copy_shared_memory(const std::vector<std::pair<std::string, Tensor>>& tensors) TENSORD_REQUIRES(mutex_);
  void place_node(Graph& graph, Node& node);
  void place_device_argument(Graph& graph, Node& node, size_t index);

  const Device device_;
  Replaced* const replaced_;
  Mutex mutex_;
  std::map<const TensorImpl*, Copied> copies_ TENSORD_GUARDED_BY(mutex_);
};

// Has the tensors of a module in the host's memory for its lifetime, for what writes files. REQUIRES: no method runs.
class AtHome {
 public:
  AtHome(const ops::ObjectPtr& object, Device device);
  ~AtHome();
  AtHome(const AtHome&) = delete;
  AtHome& operator=(const AtHome&) = delete;
  // The module's own tensor that this one stands for.
  const Tensor& original(const Tensor& tensor) const;

 private:
  void put_back();

  Placement::Replaced replaced_;
  std::map<const TensorImpl*, Tensor> originals_;
};

// Throws Error{kUnimplemented} that names the operators of the graph's own block for which the device has no code.
// Branches and loops that no run enters may have others; a run that does fails.
void check_kernels(const Graph& graph, Device device);

}  // namespace tensord::jit
