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

// Moves a loaded model to one device: the tensors of its objects, the constants of its graphs, and the devices that its
// code names or leaves open. A tensor is copied once for all its holders; tensors that share memory still do
// afterwards. Thread-safe.
class Placement {
 public:
  // The previous values, recorded where a list is given for that.
  using Replaced = std::vector<std::pair<ops::Value*, ops::Value>>;
  explicit Placement(Device device, Replaced* replaced = nullptr) : device_(device), replaced_(replaced) {}

  // Throws Error{kUnimplemented} that names a tensor without strides (quantized, sparse).
  void place_objects(const ops::ObjectPtr& object);
  void place_tensors(std::vector<Tensor>& tensors);
  // REQUIRES: no other thread uses the graph.
  void place_graph(Graph& graph);
  // Copies the device's values back into the tensors that were read from the file, for code that writes the file again.
  // Throws Error{kUnimplemented} if these are the file's memory.
  void bring_back();

 private:
  struct Copied {
    Tensor given;  // kept alive, so that its address stays unique
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
  void place_output(Graph& graph, Node& node);

  const Device device_;
  Replaced* const replaced_;
  Mutex mutex_;
  std::map<const TensorImpl*, Copied> copies_ TENSORD_GUARDED_BY(mutex_);
};

// Keeps the tensors of a module in host memory during its lifetime, for code that writes files. REQUIRES: no method
// runs.
class AtHome {
 public:
  AtHome(const ops::ObjectPtr& object, Device device);
  ~AtHome();
  AtHome(const AtHome&) = delete;
  AtHome& operator=(const AtHome&) = delete;
  // The module's own tensor that this one replaces.
  const Tensor& original(const Tensor& tensor) const;

 private:
  void put_back();

  Placement::Replaced replaced_;
  std::map<const TensorImpl*, Tensor> originals_;
};

// Throws Error{kUnimplemented} naming the operators of the graph's top block that the device has no kernel for. Blocks
// of branches and loops may never run, so they are not checked; a run that enters one fails.
void check_kernels(const Graph& graph, Device device);

}  // namespace tensord::jit
