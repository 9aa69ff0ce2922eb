#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/test_hooks.h"
#include "core/jit/ir/graph.h"
#include "core/ops/op.h"

namespace tensord::jit {

// Memory of a plan. Tensors that are views of one another share a root.
struct PlanRoot {
  enum class Kind : uint8_t {
    kArena,   // `offset` bytes into the worker's arena
    kInput,   // tensor number `index` of the flattened inputs
    kOutput,  // allocated for every run, number `index`; returned with the results
  };
  Kind kind = Kind::kArena;
  uint32_t index = 0;
  size_t offset = 0;
  size_t bytes = 0;
};

struct PlanTensor {
  Tensor meta;
  uint32_t root = 0;
  int64_t offset_bytes = 0;  // from the root's start to the first element
};

// An input tensor, or an output value.
struct PlanInput {
  uint32_t argument = 0;
  int32_t item = -1;  // in a list argument, or -1
  uint32_t tensor = 0;
};
struct PlanOutput {
  bool is_list = false;
  std::vector<uint32_t> tensors;
  // The kOutput root that this result fills alone, and that may be placed in memory to which others write concurrently;
  // -1: none.
  int32_t movable_root = -1;
};

class Plan;
struct SampleLoop;

struct PlanCall {
  const ops::Op* op = nullptr;
  // Null: runs the operator's kernel, or its direct function, on tensors over the plan's memory.
  std::unique_ptr<const ops::PreparedCall> prepared;
  // Set for a part of the plan that runs a few samples at a time; `op` is then that of its first call, and the operands
  // are whole roots.
  std::shared_ptr<const SampleLoop> loop;
  bool is_copy = false;               // copies elements in order, without the operator
  std::vector<ops::Value> arguments;  // meta tensors stand in for tensors of the plan
  std::vector<uint32_t> inputs;       // those tensors, in order
  std::vector<uint32_t> outputs;
  size_t scratch_offset = 0, scratch_bytes = 0;
  ops::Cost cost;
  std::string name;    // for reports: "linear+gelu"
  std::string detail;  // "float32[1, 128, 384] -> float32[1, 128, 1536], brgemm"
  SourceLocation location;
};

// Settings for building a plan.
struct PlanSettings {
  int threads = 1;
  ops::Precision precision = ops::Precision::kF32;
  ops::PackStore* packs = nullptr;
  bool reuses_in_place = true;       // results take the memory of operands that die
  bool shares_memory = true;         // tensors with disjoint lifetimes share memory
  bool splits_samples = true;        // batches run a few samples at a time if that is faster
  std::set<std::string> plain = {};  // operators whose kernels are used, not their prepared forms; "*": all
  size_t cache_bytes = 0;            // limit of live memory in a tile; 0: a quarter of the last-level cache
  TestHook<void(Plan&)> alter = {};  // corrupts the plan before it is verified
};

// The body of a prim::Plan node as a flat list of calls with selected kernels and placed tensors. Immutable; workers
// run it concurrently, each with its own memory (PlanState). Calls on a device are queued in its current stream.
class Plan {
 public:
  // Verifies the plan before returning it (plan_verifier.h). Throws PlanRefused, naming the pass and the call, if that
  // fails, and Error if an operator refuses these shapes.
  static std::unique_ptr<const Plan> build(const Node& node, const PlanSettings& settings);

  uint64_t id = 0;  // unique within the process
  Device device;    // of all its tensors and its arena; constant scalars may be on the CPU
  std::vector<PlanRoot> roots;
  std::vector<PlanTensor> tensors;
  std::vector<PlanInput> inputs;
  std::vector<PlanOutput> outputs;
  std::vector<size_t> output_bytes;  // of each kOutput root
  std::vector<PlanCall> calls;
  size_t arena_bytes = 0;
};

// The calls with their memory, one per line, for `tensord inspect`.
std::string to_string(const Plan& plan);
// The same without the first line.
std::string describe_calls(const Plan& plan, const std::string& indent);
// Number of calls; those in loops count once.
size_t call_count(const Plan& plan);
// `value` with its meta tensors replaced by `tensors`, in order from `next` on.
ops::Value with_tensors(const ops::Value& value, const std::vector<Tensor>& tensors, size_t& next);

}  // namespace tensord::jit
