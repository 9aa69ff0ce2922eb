// lstm, gru, rnn_tanh and rnn_relu, over padded sequences and packed ones.
#include "kernels/rnn/rnn.h"

#include "kernels/rnn/recorded.h"

namespace tensord::kernels {
namespace {

using ops::TensorList;
using ops::TensorMeta;
using ops::Value;

TensorList tensors_of(const Value& value) {
  return value.is_tensor() ? TensorList{value.to_tensor()} : ops::Unbox<TensorList>::get(value);
}

// The argument lists of all eight overloads are alike: input, [batch_sizes,] hx, params, has_biases, num_layers,
// dropout, train, bidirectional[, batch_first].
RnnCall call_of(RnnKind kind, bool is_packed, std::span<const Value> v) {
  std::optional<Tensor> batch_sizes;
  if (is_packed) batch_sizes = v[1].to_tensor();
  const std::span<const Value> rest = v.subspan(is_packed ? 2 : 1);
  RnnFlags flags;
  flags.has_biases = rest[2].to_bool();
  flags.layers = rest[3].to_int();
  flags.dropout = ops::Unbox<double>::get(rest[4]);
  flags.train = rest[5].to_bool();
  flags.bidirectional = rest[6].to_bool();
  flags.batch_first = !is_packed && rest[7].to_bool();
  return rnn_call(kind, v[0].to_tensor(), batch_sizes, tensors_of(rest[0]), tensors_of(rest[1]), flags);
}

// Numbers the call's tensors that are inputs of the run, in the order of the arguments; the parameters come last.
std::unique_ptr<ops::PreparedCall> prepare(RnnKind kind, bool is_packed, const ops::PrepareArgs& args) {
  const RnnCall call = call_of(kind, is_packed, args.arguments);
  std::vector<int> slots;
  int next = 0;
  const auto number = [&](const Tensor& tensor) { slots.push_back(tensor.is_meta() ? next++ : -1); };
  number(call.input);
  if (call.batch_sizes)
    number(*call.batch_sizes);
  else
    slots.push_back(-1);
  for (const Tensor& state : call.states) number(state);
  return prepare_rnn(call, args, slots);
}

std::vector<Tensor> run_layers(const RnnCall& call, std::span<const Value> arguments) {
  // Only the CPU has loops of its own.
  if (is_recorded(arguments) || (!call.input.is_meta() && !call.input.device().is_host())) return record_rnn(call);
  std::vector<Tensor> outputs;
  const std::vector<TensorMeta> metas = rnn_metas(call);
  for (const TensorMeta& meta : metas) {
    const Dims strides = meta.strides.empty() ? contiguous_strides(meta.sizes) : meta.strides;
    outputs.push_back(call.input.is_meta() ? Tensor::meta_strided(meta.sizes, strides, meta.dtype, meta.device)
                                           : Tensor::empty_strided(meta.sizes, strides, meta.dtype));
  }
  if (!call.input.is_meta()) run_rnn(call, outputs);
  return outputs;
}

template <size_t>
using Argument = const Value&;

// Only dropout between layers is random, and only in training: a served layer stays a pure operator.
template <size_t... I>
void add_form(RnnKind kind, bool is_packed, const std::string& name, std::index_sequence<I...>) {
  ops::OpBuilder(name, __FILE__, __LINE__)
      .impl([kind, is_packed](Argument<I>... argument) -> ops::Returns {
        const Value values[] = {argument...};
        const std::vector<Tensor> outputs = run_layers(call_of(kind, is_packed, values), values);
        return {{outputs.begin(), outputs.end()}};
      })
      .composite();
  ops::PrepareBuilder(name.c_str(), DeviceKind::kCPU,
                      [kind, is_packed](const ops::PrepareArgs& args) { return prepare(kind, is_packed, args); });
}

void add_family(RnnKind kind, const std::string& name) {
  add_form(kind, false, name + ".input", std::make_index_sequence<9>());
  add_form(kind, true, name + ".data", std::make_index_sequence<9>());
}

bool register_rnn() {
  add_family(RnnKind::kLstm, "aten::lstm");
  add_family(RnnKind::kGru, "aten::gru");
  add_family(RnnKind::kTanh, "aten::rnn_tanh");
  add_family(RnnKind::kRelu, "aten::rnn_relu");
  return true;
}
[[maybe_unused]] const bool rnn_registered = register_rnn();

}  // namespace
}  // namespace tensord::kernels
