// Compiles collected calls into a tile program; see tile_program.h. In this order: the spaces of the values
// (tile_space), the loops (tile_nest), the instructions, and finally the scratch memory by lifetimes.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>

#include "core/base/parallel.h"
#include "kernels/fused/tile_nest.h"

namespace tensord::kernels {
namespace {

using Kind = TileInstruction::Kind;
using Space = TileSpaces::Space;
using Step = TileBuilder::Step;

constexpr int64_t kTileBytes = 24 << 10;  // the share of the L1 cache for slots
constexpr int64_t kMaxScratch = 1 << 20;
// Shorter rows do not pay for a call of their own.
constexpr int64_t kShortRow = 16;

size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Whether the loop over fixed operands gives the same bits. It computes what depends on fixed operands alone only once,
// which must be neither a product that is joined to a sum nor a function.
bool may_fix(const PointwiseCall& call, int mask) {
  switch (call.formula) {
    case Formula::add:
    case Formula::sub:
    case Formula::rsub: return call.numbers.floats[0] == 1;
    case Formula::addcmul:
    case Formula::addcdiv: return std::popcount(static_cast<unsigned>(mask)) == 1;
    case Formula::xlogy:
    case Formula::xlogy_bfloat16: return false;
    default: return true;
  }
}

class Compiler {
 public:
  explicit Compiler(const TileSpaces& spaces)
      : spaces_(spaces), program_(std::make_unique<TileProgram>()), nest_(spaces, *program_) {}

  // Returns false when the calls are not covered. `fits` tells whether the scratch memory has its target size.
  bool compile(int64_t elements, bool* fits) {
    addresses_.resize(spaces_.values().size(), -1);
    if (!nest_.make(elements) || !emit()) return false;
    if (program_->streams.size() + buffers_.size() + program_->constants.size() > kMaxTileAddresses) return false;
    const int64_t bytes = allot();
    const bool is_smallest = spaces_.has_rows() && program_->tile_rows == 1;
    if (is_smallest && bytes > kMaxScratch) return false;
    *fits = bytes <= kTileBytes || is_smallest;
    elements_ = elements;
    return true;
  }

  std::unique_ptr<TileProgram> finish(int threads) {
    TileProgram& p = *program_;
    int64_t bytes = 0;
    for (const Buffer& buffer : buffers_) {
      p.slots.push_back(buffer.offset);
      bytes = std::max(bytes, buffer.offset + buffer.bytes);
    }
    for (TileInstruction& i : p.instructions) {
      for (int* address : {&i.out, &i.a, &i.b, &i.c}) *address = final_address(*address);
    }
    p.part_bytes = align(static_cast<size_t>(bytes));
    // Parts may be larger when nothing has to stay in the L1 cache.
    const bool is_flat = !spaces_.has_rows() && buffers_.empty() && all_fixed() && p.columns > elements_;
    if (is_flat) p.tile_columns = std::min<int64_t>(p.columns / 8, 1 << 15) / 64 * 64 + 64;
    find_cost(threads);
    find_overwrites();
    return std::move(program_);
  }

 private:
  bool all_fixed() const {
    for (const auto& constant : program_->constants) {
      if (constant.size() * sizeof(double) > align(1)) return false;
    }
    return true;
  }

  void find_cost(int threads) {
    TileProgram& p = *program_;
    const auto numel = static_cast<double>(checked_numel(spaces_.sizes()));
    for (size_t s = 0; s < p.streams.size(); ++s) {
      double touched = static_cast<double>(p.streams[s].element_size);
      const Dims& strides = nest_.strides(static_cast<int>(s));
      for (size_t d = 0; d < strides.size(); ++d)
        touched *= strides[d] == 0 ? 1 : static_cast<double>(spaces_.sizes()[d]);
      p.cost.bytes += touched;
    }
    p.cost.flops = numel * static_cast<double>(p.instructions.size());
    const double ns = cost_ns_ * numel + 0.02 * p.cost.bytes;
    p.parts = parallel_parts(p.tiles(), ns / static_cast<double>(p.tiles()), threads);
    p.scratch_bytes = p.part_bytes * static_cast<size_t>(p.parts);
  }

  // ---- instructions

  // A slot before its memory is assigned.
  struct Buffer {
    int64_t bytes;
    int first = 0, last = 0;  // instructions
    bool is_pinned = false;   // keeps its contents from tile to tile
    bool shares = false;      // may take the memory of an operand whose lifetime ends where its own begins
    int64_t offset = -1;
  };
  // While streams and buffers are still unknown, slots are numbered from here and constants from there.
  static constexpr int kSlots = 1 << 16, kConstants = 1 << 17;

  int64_t tile_elements(Space space) const {
    const TileProgram& p = *program_;
    return p.tile_rows * (space == Space::kFull ? p.tile_columns : 1);
  }
  int new_buffer(DType dtype, Space space, bool shares) {
    const int at = static_cast<int>(program_->instructions.size());
    const auto bytes = static_cast<int64_t>(align(static_cast<size_t>(tile_elements(space)) * size_of(dtype)));
    buffers_.push_back({bytes, at, at, false, shares});
    return kSlots + static_cast<int>(buffers_.size()) - 1;
  }
  void use(int address) {
    if (address >= kSlots && address < kConstants)
      buffers_[static_cast<size_t>(address - kSlots)].last = static_cast<int>(program_->instructions.size());
  }
  TileInstruction& push(Kind kind, Space space, int out, int a) {
    use(a);
    use(out);
    TileInstruction i{kind};
    i.per_row = space != Space::kFull;
    i.out = out;
    i.a = i.b = i.c = a;
    program_->instructions.push_back(i);
    return program_->instructions.back();
  }

  // A constant of `count` times one element, the bytes of which are in `bits`.
  int constant(double bits, DType dtype, int64_t count) {
    const std::tuple key{std::bit_cast<int64_t>(bits), dtype, count};
    const auto [it, is_new] = constant_of_.try_emplace(key, 0);
    if (is_new) {
      std::vector<double> tile(align(static_cast<size_t>(count) * size_of(dtype)) / sizeof(double));
      load_tile(dtype, &bits, 0, dtype, tile.data(), count);
      program_->constants.push_back(std::move(tile));
      it->second = kConstants + static_cast<int>(program_->constants.size()) - 1;
    }
    return it->second;
  }
  static double bits_of(const ops::Scalar& number, DType loop) {
    if (loop == DType::kFloat64) return number.to_double();
    if (loop == DType::kInt64) return std::bit_cast<double>(number.to_int());
    double bits = 0;
    const auto value = static_cast<float>(number.to_double());
    std::memcpy(&bits, &value, sizeof(value));
    return bits;
  }
  static double bits_of(const Tensor& constant, const PointwiseCall& call, DType loop) {
    // A 0-d operand may have a wider dtype than the result, and is rounded to the result's first.
    const bool narrows = constant.ndim() == 0 && constant.dtype() != call.compute && loop != call.compute;
    const Tensor rounded = narrows ? constant.to(call.compute) : constant;
    double bits = 0;
    load_tile(rounded.dtype(), rounded.raw_data(), 1, loop, &bits, 1);
    return bits;
  }

  // The value as dense memory of `dtype` for a step in `space`; -1 if there is none.
  int operand_address(int value, DType dtype, Space at) {
    const std::tuple key{value, dtype, at == Space::kFull};
    if (const auto it = cached_.find(key); it != cached_.end()) return it->second;
    int address;
    if (spaces_.is_computed(value)) {
      address = converted_value(value, dtype);
      if (spaces_.space(value) != Space::kFull && at == Space::kFull) {
        const int expanded = new_buffer(dtype, Space::kFull, false);
        push(Kind::kExpand, Space::kFull, expanded, address).to = dtype;
        address = expanded;
      }
    } else {
      address = loaded_input(value, dtype, at);
    }
    cached_[key] = address;
    return address;
  }
  // A computed value in its own space.
  int converted_value(int value, DType dtype) {
    const int address = addresses_[static_cast<size_t>(value)];
    const DType stored = spaces_.tensor(value).dtype();
    if (stored == dtype) return address;
    const Space space = spaces_.space(value);
    const int converted = new_buffer(dtype, space, false);
    TileInstruction& i = push(Kind::kConvert, space, converted, address);
    i.from = stored;
    i.to = dtype;
    return converted;
  }
  int loaded_input(int value, DType dtype, Space at) {
    const int stream = nest_.input(value, at);
    const DType stored = spaces_.tensor(value).dtype();
    if (stored == dtype && nest_.is_dense(stream, at)) return stream;
    const int address = new_buffer(dtype, at, false);
    TileInstruction& i = push(Kind::kLoad, at, address, stream);
    i.from = stored;
    i.to = dtype;
    const TileStream& s = program_->streams[static_cast<size_t>(stream)];
    const bool one_block = program_->tile_columns == program_->columns;
    i.is_fixed = s.row_step == 0 && (s.column_step == 0 || one_block);
    buffers_.back().is_pinned = i.is_fixed;
    return address;
  }

  // How a formula's loop reads an operand.
  enum class Access : uint8_t {
    kDense,
    kFixed,  // one element for the whole tile
    kByRow,  // one element for each row of the tile
  };
  Access access_of(const TileBuilder::Operand& operand, DType loop, Space at) const {
    const TileProgram& p = *program_;
    const int value = operand.value;
    if (value < 0 || spaces_.is_number(value)) return Access::kFixed;
    if (at != Space::kFull) return Access::kDense;
    const Access by_row = p.tile_rows == 1 ? Access::kFixed : p.columns >= kShortRow ? Access::kByRow : Access::kDense;
    if (spaces_.is_computed(value)) return spaces_.space(value) == Space::kFull ? Access::kDense : by_row;
    const TileStream& s = p.streams[static_cast<size_t>(nest_.input(value, at))];
    if (spaces_.tensor(value).dtype() != loop || s.column_step != 0) return Access::kDense;
    return s.row_step == 0 ? Access::kFixed : by_row;
  }
  // The place of a fixed operand, and the distance between the elements of neighboring rows.
  int fixed_address(const TileBuilder::Operand& operand, const PointwiseCall& call, DType loop, int64_t* row_step) {
    const int value = operand.value;
    *row_step = 0;
    if (value < 0) return constant(bits_of(operand.number, loop), loop, 1);
    if (spaces_.is_number(value)) return constant(bits_of(spaces_.tensor(value), call, loop), loop, 1);
    if (spaces_.is_computed(value)) {
      *row_step = static_cast<int64_t>(size_of(loop));
      return converted_value(value, loop);
    }
    const int stream = nest_.input(value, Space::kFull);
    *row_step = program_->streams[static_cast<size_t>(stream)].row_step;
    return stream;
  }
  int dense_address(const TileBuilder::Operand& operand, const PointwiseCall& call, DType loop, Space at) {
    const int value = operand.value;
    if (value < 0) return constant(bits_of(operand.number, loop), loop, tile_elements(at));
    if (spaces_.is_number(value)) return constant(bits_of(spaces_.tensor(value), call, loop), loop, tile_elements(at));
    return operand_address(value, loop, at);
  }

  // Emits the code that puts a step's result, written as `written`, in its place. `emit_step` gets the address to write
  // to.
  template <class EmitStep>
  void place_result(int value, DType written, EmitStep&& emit_step) {
    const Space at = spaces_.space(value);
    const DType stored = spaces_.tensor(value).dtype();
    const int output = nest_.output(value);
    const bool direct = output >= 0 && nest_.is_dense(output, at);
    int address = written == stored && direct ? output : new_buffer(written, at, true);
    emit_step(address);
    if (written != stored) {
      const int converted = direct ? output : new_buffer(stored, at, false);
      TileInstruction& i = push(Kind::kConvert, at, converted, address);
      i.from = written;
      i.to = stored;
      address = converted;
    }
    if (output >= 0 && !direct) push(Kind::kStore, at, output, address);
    addresses_[static_cast<size_t>(value)] = address;
  }

  bool emit() {
    for (size_t v = 0; v < spaces_.values().size(); ++v) {
      const int value = static_cast<int>(v);
      if (!spaces_.is_computed(value)) continue;
      const Step& step = spaces_.step_of(value);
      if (step.is_row_kernel)
        emit_row_kernel(value, step);
      else if (!emit_formula(value, step))
        return false;
    }
    return true;
  }

  bool emit_formula(int value, const Step& step) {
    const PointwiseCall& call = step.call;
    const DType loop = row_dtype(call.compute);
    const FormulaRows& rows = formula_rows(call.formula);
    RowFn row = loop == DType::kFloat32 ? rows.f32 : loop == DType::kFloat64 ? rows.f64 : rows.i64;
    if (row == nullptr) return false;
    const Space at = spaces_.space(value);
    std::array<Access, 3> access{};
    int mask = 0;
    for (size_t k = 0; k < call.count; ++k) {
      const int operand = step.operands[k].value;
      if (operand >= 0 && !spaces_.is_number(operand)) {
        // Would need rounding at run time, as bits_of does.
        const Tensor& t = spaces_.tensor(operand);
        if (t.ndim() == 0 && t.dtype() != call.compute && loop != call.compute) return false;
      }
      access[k] = access_of(step.operands[k], loop, at);
      mask |= access[k] == Access::kDense ? 0 : 1 << k;
    }
    const RowFn fixed = loop == DType::kFloat32 && mask != 0 ? rows.f32_fixed[static_cast<size_t>(mask)] : nullptr;
    const bool is_fixed = fixed != nullptr && may_fix(call, mask);
    if (is_fixed) row = fixed;
    TileInstruction made{Kind::kFormula};
    std::array<int, 3> operands{};
    for (size_t k = 0; k < call.count; ++k) {
      made.steps[k + 1] = program_->tile_columns * static_cast<int64_t>(size_of(loop));
      if (is_fixed && access[k] != Access::kDense) {
        operands[k] = fixed_address(step.operands[k], call, loop, &made.steps[k + 1]);
        made.by_row = made.by_row || (access[k] == Access::kByRow && program_->tile_rows > 1);
      } else {
        operands[k] = dense_address(step.operands[k], call, loop, at);
      }
    }
    for (size_t k = call.count; k < 3; ++k) {
      operands[k] = operands[0];
      made.steps[k + 1] = made.steps[1];
    }
    const DType written = rows.writes_bool ? DType::kBool : loop;
    made.steps[0] = program_->tile_columns * static_cast<int64_t>(size_of(written));
    made.row = row;
    made.numbers = call.numbers;
    cost_ns_ += at == Space::kFull ? formula_cost_ns(call.formula, loop) : 0;
    place_result(value, written, [&](int out) {
      for (const int operand : operands) use(operand);
      TileInstruction& i = push(Kind::kFormula, at, out, operands[0]);
      made.per_row = i.per_row;
      made.out = out;
      made.a = operands[0];
      made.b = operands[1];
      made.c = operands[2];
      i = made;
    });
    return true;
  }

  void emit_row_kernel(int value, const Step& step) {
    const int input = operand_address(step.input, step.row_kernel.compute, Space::kFull);
    cost_ns_ += step.row_kernel.cost_ns;
    place_result(value, step.row_kernel.result, [&](int out) {
      if (step.row_kernel.reduces && out >= kSlots) buffers_[static_cast<size_t>(out - kSlots)].shares = false;
      TileInstruction& i = push(Kind::kRow, Space::kFull, out, input);
      i.b = step.extra[0] < 0 ? -1 : nest_.extra(step.extra[0]);
      i.c = step.extra[1] < 0 ? -1 : nest_.extra(step.extra[1]);
      i.row_kernel = step.row_kernel;
    });
  }

  // ---- memory

  // Assigns offsets by lifetimes: first fit among those alive at the same time. Returns the total size in bytes.
  int64_t allot() {
    int64_t total = 0;
    for (size_t b = 0; b < buffers_.size(); ++b) {
      Buffer& buffer = buffers_[b];
      std::vector<std::pair<int64_t, int64_t>> taken;
      for (size_t other = 0; other < b; ++other) {
        const Buffer& o = buffers_[other];
        const bool ended =
            o.last < buffer.first || (o.last == buffer.first && buffer.shares && o.bytes == buffer.bytes);
        if (!ended || o.is_pinned || buffer.is_pinned) taken.emplace_back(o.offset, o.offset + o.bytes);
      }
      std::sort(taken.begin(), taken.end());
      int64_t offset = 0;
      for (const auto& [begin, end] : taken) {
        if (offset + buffer.bytes <= begin) break;
        offset = std::max(offset, end);
      }
      buffer.offset = offset;
      total = std::max(total, offset + buffer.bytes);
    }
    return total;
  }

  int final_address(int address) const {
    const int slots = static_cast<int>(program_->streams.size()), constants = slots + static_cast<int>(buffers_.size());
    if (address >= kConstants) return constants + address - kConstants;
    return address >= kSlots ? slots + address - kSlots : address;
  }

  // Output 0 may share the memory of an input of its shape that nothing reads after output 0 is written.
  void find_overwrites() {
    TileProgram& p = *program_;
    if (spaces_.space(spaces_.outputs()[0]) != Space::kFull) return;
    const Tensor& meta = spaces_.output_meta(0);
    const int target = nest_.output(spaces_.outputs()[0]);
    size_t first_write = 0;
    while (p.instructions[first_write].out != target) ++first_write;
    for (size_t s = 0; s < p.streams.size(); ++s) {
      const int input = p.streams[s].input, address = static_cast<int>(s);
      if (input < 0 || input >= 32 || !(nest_.strides(address) == nest_.strides(target))) continue;
      bool is_free = true;
      for (const TileBuilder::Value& value : spaces_.values()) {
        if (value.step >= 0 || value.input != input) continue;
        is_free = value.tensor.dtype() == meta.dtype() && value.tensor.numel() == meta.numel();
      }
      for (size_t other = 0; other < p.streams.size(); ++other)
        is_free = is_free && (other == s || p.streams[other].input != input);
      for (size_t k = first_write + 1; k < p.instructions.size(); ++k) {
        const TileInstruction& i = p.instructions[k];
        is_free = is_free && i.a != address && i.b != address && i.c != address;
      }
      if (is_free) p.may_overwrite |= 1u << input;
    }
  }

  const TileSpaces& spaces_;
  std::unique_ptr<TileProgram> program_;
  TileNest nest_;
  int64_t elements_ = 0;
  double cost_ns_ = 0;
  std::vector<Buffer> buffers_;
  std::map<std::tuple<int, DType, bool>, int> cached_;
  std::map<std::tuple<int64_t, DType, int64_t>, int> constant_of_;
  std::vector<int> addresses_;  // of computed values
};

}  // namespace

std::unique_ptr<ops::PreparedCall> TileBuilder::finish(std::span<const int> outputs, std::span<const Tensor> metas,
                                                       int threads) {
  TileSpaces spaces(values_, steps_, outputs, metas);
  if (!spaces.find()) return nullptr;
  for (int64_t elements = 2048; elements >= 128; elements /= 2) {
    Compiler compiler(spaces);
    bool fits = false;
    if (!compiler.compile(elements, &fits)) return nullptr;
    if (fits) return compiler.finish(threads);
  }
  return nullptr;
}

}  // namespace tensord::kernels
