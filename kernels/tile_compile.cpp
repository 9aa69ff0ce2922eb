// Compiles collected calls into a tile program; see tile_program.h. In order: the iteration
// space, which values there are one of for each row, the loop nest with the size of a tile, the
// instructions, and last the scratch memory by lifetimes.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

#include "core/base/parallel.h"
#include "kernels/tile_program.h"

namespace tensord::kernels {
namespace {

using Kind = TileInstruction::Kind;
using Step = TileBuilder::Step;
using BuilderValue = TileBuilder::Value;

// The space of a value: all elements, or one for each row of the last dimension; that dimension
// has size 1 or (kDropped) is not there.
enum class Space : uint8_t { kFull, kRow, kDropped };

constexpr int64_t kTileBytes = 24 << 10;  // what slots should take of the first cache
constexpr int64_t kMaxScratch = 1 << 20;

size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

class Compiler {
 public:
  Compiler(const std::vector<BuilderValue>& values, const std::vector<Step>& steps, std::span<const int> outputs,
           std::span<const Tensor> metas)
      : values_(values), steps_(steps), outputs_(outputs), metas_(metas), spaces_(values.size(), Space::kFull) {}

  std::unique_ptr<ops::PreparedCall> compile(int threads) {
    if (!find_space() || !find_spaces() || !check_outputs()) return nullptr;
    for (int64_t elements = 2048; elements >= 128; elements /= 2) {
      program_ = std::make_unique<TileProgram>();
      reset();
      if (!collect_streams()) return nullptr;
      make_nest(elements);
      if (!emit()) return nullptr;
      if (addresses() > kMaxTileAddresses || program_->outer.size() > kMaxTileDims) return nullptr;
      const int64_t bytes = allot();
      const bool is_smallest = has_lane_ && program_->tile_rows == 1;
      if (bytes <= kTileBytes || (is_smallest && bytes <= kMaxScratch)) return finish(elements, threads);
      if (is_smallest) return nullptr;
    }
    return nullptr;
  }

 private:
  // ---- spaces

  const Tensor& tensor(int value) const { return values_[static_cast<size_t>(value)].tensor; }
  const BuilderValue& value_of(int value) const { return values_[static_cast<size_t>(value)]; }
  Space space(int value) const { return spaces_[static_cast<size_t>(value)]; }
  bool is_number(int value) const {
    return value_of(value).step < 0 && !tensor(value).is_meta() && tensor(value).numel() == 1;
  }

  bool find_space() {
    if (outputs_.empty()) return false;
    for (const Step& step : steps_) {
      if (!step.is_lane) continue;
      if (has_lane_ && !(tensor(step.input).sizes() == sizes_)) return false;
      has_lane_ = true;
      sizes_ = tensor(step.input).sizes();
    }
    if (!has_lane_) sizes_ = tensor(outputs_[0]).sizes();
    if (checked_numel(sizes_) == 0) return false;
    row_sizes_ = sizes_;
    if (has_lane_) row_sizes_.back() = 1;
    dropped_sizes_ = sizes_;
    if (has_lane_) dropped_sizes_.erase(dropped_sizes_.size() - 1);
    return true;
  }

  static bool fits(const Dims& sizes, const Dims& to) {
    if (sizes.size() > to.size()) return false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t size = sizes[sizes.size() - 1 - i];
      if (size != 1 && size != to[to.size() - 1 - i]) return false;
    }
    return true;
  }
  const Dims& sizes_of(Space space) const {
    return space == Space::kFull ? sizes_ : space == Space::kRow ? row_sizes_ : dropped_sizes_;
  }

  // The operands of a step that are values with elements.
  std::vector<int> operands_of(const Step& step) const {
    if (step.is_lane) return {step.input};
    std::vector<int> out;
    for (size_t k = 0; k < step.call.count; ++k) {
      if (step.operands[k].value >= 0 && !is_number(step.operands[k].value)) out.push_back(step.operands[k].value);
    }
    return out;
  }

  bool find_spaces() {
    for (size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].step < 0) continue;
      const Step& step = steps_[static_cast<size_t>(values_[v].step)];
      const Dims& result = values_[v].tensor.sizes();
      if (step.is_lane) {
        if (value_of(step.input).step >= 0 && space(step.input) != Space::kFull) return false;
        if (step.lane.reduces)
          spaces_[v] = result == row_sizes_ && result.size() == sizes_.size() ? Space::kRow : Space::kDropped;
        if (!(result == sizes_of(spaces_[v]))) return false;
        continue;
      }
      bool full = false, row = false, dropped = false;
      for (const int operand : operands_of(step)) {
        if (value_of(operand).step < 0) continue;
        full = full || space(operand) == Space::kFull;
        row = row || space(operand) == Space::kRow;
        dropped = dropped || space(operand) == Space::kDropped;
      }
      if (dropped && (full || row)) return false;
      if (dropped)
        spaces_[v] = Space::kDropped;
      else if (row && !full && result == row_sizes_)
        spaces_[v] = Space::kRow;
      if (!fits(result, sizes_of(spaces_[v]))) return false;
      if (spaces_[v] == Space::kDropped && !(result == dropped_sizes_)) return false;
      for (const int operand : operands_of(step)) {
        if (!fits(tensor(operand).sizes(), sizes_of(spaces_[v]))) return false;
      }
    }
    return true;
  }

  bool check_outputs() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int value = outputs_[i];
      if (value_of(value).step < 0) return false;
      if (std::find(outputs_.begin(), outputs_.begin() + static_cast<int64_t>(i), value) !=
          outputs_.begin() + static_cast<int64_t>(i))
        return false;
      if (metas_[i].dtype() != tensor(value).dtype()) return false;
      if (!(tensor(value).sizes() == sizes_of(space(value)))) return false;
      if (metas_[i].sizes() == tensor(value).sizes()) continue;
      // Rows that were made of several dimensions.
      if (metas_[i].numel() != tensor(value).numel() || !metas_[i].is_contiguous()) return false;
    }
    return true;
  }

  // ---- streams and the loop nest

  void reset() {
    streams_.clear();
    stream_of_.clear();
    buffers_.clear();
    cached_.clear();
    addresses_.clear();
    addresses_.resize(values_.size(), -1);
    constant_of_.clear();
    cost_ns_ = 0;
  }

  // Memory seen from the iteration space: a stride for each dimension, in elements. Rows get 0
  // for the last one.
  struct Strides {
    Dims strides;
    Space space;
  };

  int add_stream(const Tensor& memory, Space space, TileStream stream) {
    Strides s{{}, space};
    const Dims strides = memory.sizes() == sizes_of(space) || fits(memory.sizes(), sizes_of(space))
                             ? broadcast_strides(memory.sizes(), memory.strides(), sizes_of(space))
                             : contiguous_strides(sizes_of(space));
    s.strides = strides;
    if (space == Space::kDropped) s.strides.push_back(0);
    if (space == Space::kRow) s.strides.back() = 0;
    stream.element_size = static_cast<int64_t>(size_of(memory.dtype()));
    program_->streams.push_back(std::move(stream));
    streams_.push_back(std::move(s));
    return static_cast<int>(streams_.size()) - 1;
  }

  int input_stream(int value, Space space) {
    const auto [it, is_new] = stream_of_.try_emplace({value, space == Space::kFull ? 0 : 1}, 0);
    if (!is_new) return it->second;
    TileStream stream;
    stream.input = value_of(value).input;
    if (stream.input < 0) {
      stream.data = tensor(value).raw_data();
      program_->kept.push_back(tensor(value));
    }
    return it->second = add_stream(tensor(value), space, std::move(stream));
  }

  // Outputs first: their memory order decides the order of the loops.
  bool collect_streams() {
    for (const bool full : {true, false}) {
      for (size_t i = 0; i < outputs_.size(); ++i) {
        if ((space(outputs_[i]) == Space::kFull) != full) continue;
        TileStream stream;
        stream.output = static_cast<int>(i);
        output_stream_.resize(outputs_.size());
        output_stream_[i] = add_stream(metas_[i], space(outputs_[i]), std::move(stream));
      }
    }
    for (size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].step < 0) continue;
      const Step& step = steps_[static_cast<size_t>(values_[v].step)];
      const Space at = step.is_lane ? Space::kFull : spaces_[v];
      for (const int operand : operands_of(step)) {
        if (value_of(operand).step < 0) input_stream(operand, at);
      }
      for (const int extra : step.extra) {
        if (extra >= 0) raw_stream(extra);
      }
    }
    return streams_.size() <= kMaxTileAddresses;
  }

  // A dense row that every row uses as a whole.
  int raw_stream(int value) {
    const auto [it, is_new] = stream_of_.try_emplace({value, 2}, 0);
    if (!is_new) return it->second;
    TileStream stream;
    stream.input = value_of(value).input;
    if (stream.input < 0) {
      stream.data = tensor(value).raw_data();
      program_->kept.push_back(tensor(value));
    }
    stream.element_size = static_cast<int64_t>(size_of(tensor(value).dtype()));
    program_->streams.push_back(std::move(stream));
    streams_.push_back({Dims(sizes_.size(), 0), Space::kRow});
    return it->second = static_cast<int>(streams_.size()) - 1;
  }

  // Dimensions that are looped over, outermost first; those that every stream walks without a gap
  // are merged, but never with the dimension of the rows.
  void make_nest(int64_t elements) {
    std::vector<size_t> order;
    const size_t loops = sizes_.size() - (has_lane_ ? 1 : 0);
    for (size_t d = 0; d < loops; ++d) {
      if (sizes_[d] != 1) order.push_back(d);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      for (const Strides& s : streams_) {
        if (s.strides[a] != 0 && s.strides[b] != 0 && s.strides[a] != s.strides[b]) return s.strides[a] > s.strides[b];
      }
      return false;
    });
    nest_sizes_.clear();
    nest_strides_.assign(streams_.size(), {});
    const auto push = [&](size_t d, bool may_merge) {
      bool merges = may_merge && !nest_sizes_.empty();
      for (size_t s = 0; s < streams_.size() && merges; ++s)
        merges = nest_strides_[s].back() == streams_[s].strides[d] * sizes_[d];
      if (merges)
        nest_sizes_.back() *= sizes_[d];
      else
        nest_sizes_.push_back(sizes_[d]);
      for (size_t s = 0; s < streams_.size(); ++s) {
        if (merges)
          nest_strides_[s].back() = streams_[s].strides[d];
        else
          nest_strides_[s].push_back(streams_[s].strides[d]);
      }
    };
    for (const size_t d : order) push(d, true);
    if (has_lane_) push(sizes_.size() - 1, false);
    cut(elements);
  }

  void cut(int64_t elements) {
    TileProgram& p = *program_;
    const size_t n = nest_sizes_.size();
    p.columns = n > 0 ? nest_sizes_[n - 1] : 1;
    p.rows = n > 1 ? nest_sizes_[n - 2] : 1;
    for (size_t d = 0; d + 2 < n; ++d) p.outer.push_back(nest_sizes_[d]);
    if (has_lane_ || p.columns <= elements) {
      p.tile_columns = p.columns;
      p.tile_rows = std::clamp<int64_t>(elements / p.columns, 1, p.rows);
    } else {
      const int64_t blocks = (p.columns + elements - 1) / elements;
      p.tile_columns = ((p.columns + blocks - 1) / blocks + 63) / 64 * 64;
      p.tile_rows = 1;
    }
    for (size_t s = 0; s < streams_.size(); ++s) {
      TileStream& stream = p.streams[s];
      const auto& strides = nest_strides_[s];
      for (size_t d = 0; d + 2 < n; ++d) stream.strides.push_back(strides[d] * stream.element_size);
      stream.row_step = n > 1 ? strides[n - 2] * stream.element_size : 0;
      stream.column_step = n > 0 ? strides[n - 1] * stream.element_size : stream.element_size;
    }
  }

  // Whether the elements of each tile follow one another.
  bool is_dense(int stream, Space space) const {
    const TileProgram& p = *program_;
    const TileStream& s = p.streams[static_cast<size_t>(stream)];
    if (space != Space::kFull) return p.tile_rows == 1 || s.row_step == s.element_size;
    if (p.tile_columns == 1 && p.columns == 1) return p.tile_rows == 1 || s.row_step == s.element_size;
    return s.column_step == s.element_size && (p.tile_rows == 1 || s.row_step == p.tile_columns * s.element_size);
  }

  // ---- instructions

  // A slot before it has its memory.
  struct Buffer {
    int64_t bytes;
    int first = 0, last = 0;  // instructions
    bool is_pinned = false;   // keeps its contents from tile to tile
    bool shares = false;      // may take the memory of an operand that ends where it begins
    int64_t offset = -1;
  };
  // Until all streams and buffers are known, slots are numbered from here and constants from there.
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

  // A tile of one number. `values` has room for one of any compute type.
  int constant_tile(double bits, DType dtype, Space space) {
    const auto bytes = static_cast<size_t>(tile_elements(space)) * size_of(dtype);
    const std::tuple key{std::bit_cast<int64_t>(bits), dtype, space == Space::kFull};
    const auto [it, is_new] = constant_of_.try_emplace(key, 0);
    if (is_new) {
      std::vector<double> tile(align(bytes) / sizeof(double));
      load_tile(dtype, &bits, 0, dtype, tile.data(), tile_elements(space));
      program_->constants.push_back(std::move(tile));
      it->second = kConstants + static_cast<int>(program_->constants.size()) - 1;
    }
    return it->second;
  }
  int number_address(const ops::Scalar& number, DType loop, Space space) {
    double bits = 0;
    if (loop == DType::kFloat32) {
      const auto value = static_cast<float>(number.to_double());
      std::memcpy(&bits, &value, sizeof(value));
    } else if (loop == DType::kFloat64) {
      bits = number.to_double();
    } else {
      bits = std::bit_cast<double>(number.to_int());
    }
    return constant_tile(bits, loop, space);
  }
  int constant_address(const Tensor& constant, const PointwiseCall& call, DType loop, Space space) {
    // A 0-d operand may be of a wider dtype than the result; it is rounded to that first.
    const bool narrows = constant.ndim() == 0 && constant.dtype() != call.compute && loop != call.compute;
    const Tensor rounded = narrows ? constant.to(call.compute) : constant;
    double bits = 0;
    load_tile(rounded.dtype(), rounded.raw_data(), 1, loop, &bits, 1);
    return constant_tile(bits, loop, space);
  }

  // Where the value is found, dense and of `dtype`, by a step in `space`; -1 when it is not.
  int operand_address(int value, DType dtype, Space at) {
    const bool is_computed = value_of(value).step >= 0;
    const std::tuple key{value, dtype, at == Space::kFull};
    if (const auto it = cached_.find(key); it != cached_.end()) return it->second;
    const DType stored = tensor(value).dtype();
    int address;
    if (is_computed) {
      address = addresses_[static_cast<size_t>(value)];
      const Space from = space(value);
      if (stored != dtype) {
        const int converted = new_buffer(dtype, from, false);
        TileInstruction& i = push(Kind::kConvert, from, converted, address);
        i.from = stored;
        i.to = dtype;
        address = converted;
      }
      if (from != Space::kFull && at == Space::kFull) {
        const int expanded = new_buffer(dtype, Space::kFull, false);
        push(Kind::kExpand, Space::kFull, expanded, address).to = dtype;
        address = expanded;
      }
    } else {
      const int stream = input_stream(value, at);
      address = stream;
      if (stored != dtype || !is_dense(stream, at)) {
        address = new_buffer(dtype, at, false);
        TileInstruction& i = push(Kind::kLoad, at, address, stream);
        i.from = stored;
        i.to = dtype;
        const TileStream& s = program_->streams[static_cast<size_t>(stream)];
        const bool one_block = program_->tile_columns == program_->columns;
        i.is_fixed = s.row_step == 0 && (s.column_step == 0 || one_block);
        buffers_.back().is_pinned = i.is_fixed;
      }
    }
    cached_[key] = address;
    return address;
  }

  int output_of(int value) const {
    const auto it = std::find(outputs_.begin(), outputs_.end(), value);
    return it == outputs_.end() ? -1 : output_stream_[static_cast<size_t>(it - outputs_.begin())];
  }

  // Emits what puts a step's result, written as `written`, where it belongs; `emit_step` gets the
  // address to write to.
  template <class EmitStep>
  void place_result(int value, DType written, EmitStep&& emit_step) {
    const Space at = space(value);
    const DType stored = tensor(value).dtype();
    const int output = output_of(value);
    const bool direct = output >= 0 && is_dense(output, at);
    int address = written == stored && direct ? output : new_buffer(written, at, true);
    emit_step(address);
    if (written != stored) {
      const int converted = direct ? output : new_buffer(stored, at, false);
      TileInstruction& i = push(Kind::kConvert, at, converted, address);
      i.from = written;
      i.to = stored;
      address = converted;
    }
    if (output >= 0 && !direct) {
      TileInstruction& i = push(Kind::kStore, at, output, address);
      i.from = i.to = stored;
    }
    addresses_[static_cast<size_t>(value)] = address;
  }

  bool emit() {
    for (size_t v = 0; v < values_.size(); ++v) {
      if (values_[v].step < 0) continue;
      const Step& step = steps_[static_cast<size_t>(values_[v].step)];
      if (!(step.is_lane ? emit_lane(static_cast<int>(v), step) : emit_formula(static_cast<int>(v), step)))
        return false;
    }
    return true;
  }

  bool emit_formula(int value, const Step& step) {
    const DType loop = row_dtype(step.call.compute);
    const FormulaRows& rows = formula_rows(step.call.formula);
    const RowFn row = loop == DType::kFloat32 ? rows.f32 : loop == DType::kFloat64 ? rows.f64 : rows.i64;
    if (row == nullptr) return false;
    const Space at = space(value);
    std::array<int, 3> operands{};
    for (size_t k = 0; k < step.call.count; ++k) {
      const int operand = step.operands[k].value;
      if (operand < 0) {
        operands[k] = number_address(step.operands[k].number, loop, at);
      } else if (is_number(operand)) {
        operands[k] = constant_address(tensor(operand), step.call, loop, at);
      } else {
        const Tensor& t = tensor(operand);
        if (t.ndim() == 0 && t.dtype() != step.call.compute && loop != step.call.compute) return false;
        operands[k] = operand_address(operand, loop, at);
      }
    }
    for (size_t k = step.call.count; k < 3; ++k) operands[k] = operands[0];
    cost_ns_ += formula_cost_ns(step.call.formula, loop) * (at == Space::kFull ? 1 : 0);
    place_result(value, rows.writes_bool ? DType::kBool : loop, [&](int out) {
      use(operands[1]);
      use(operands[2]);
      TileInstruction& i = push(Kind::kFormula, at, out, operands[0]);
      i.b = operands[1];
      i.c = operands[2];
      i.row = row;
      i.numbers = step.call.numbers;
    });
    return true;
  }

  bool emit_lane(int value, const Step& step) {
    const int input = operand_address(step.input, step.lane.compute, Space::kFull);
    cost_ns_ += step.lane.cost_ns;
    place_result(value, step.lane.result, [&](int out) {
      if (step.lane.reduces && out >= kSlots) buffers_[static_cast<size_t>(out - kSlots)].shares = false;
      TileInstruction& i = push(Kind::kLane, Space::kFull, out, input);
      i.b = step.extra[0] < 0 ? -1 : raw_stream(step.extra[0]);
      i.c = step.extra[1] < 0 ? -1 : raw_stream(step.extra[1]);
      i.lane = step.lane;
    });
    return true;
  }

  // ---- memory

  size_t addresses() const { return streams_.size() + buffers_.size() + program_->constants.size(); }

  // Offsets by lifetimes: first fit among those alive at the same time. Gives the bytes in all.
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
    const int slots = static_cast<int>(streams_.size()), constants = slots + static_cast<int>(buffers_.size());
    if (address >= kConstants) return constants + address - kConstants;
    return address >= kSlots ? slots + address - kSlots : address;
  }

  std::unique_ptr<ops::PreparedCall> finish(int64_t elements, int threads) {
    TileProgram& p = *program_;
    for (TileInstruction& i : p.instructions) {
      for (int* address : {&i.out, &i.a, &i.b, &i.c}) *address = final_address(*address);
    }
    int64_t bytes = 0;
    for (const Buffer& buffer : buffers_) {
      p.slots.push_back(buffer.offset);
      bytes = std::max(bytes, buffer.offset + buffer.bytes);
    }
    for (const TileStream& stream : p.streams)
      cost_ns_ += stream.column_step == 0 ? 0 : 0.02 * static_cast<double>(stream.element_size);
    // Nothing has to stay in the first cache: the pieces may be larger.
    const bool is_flat = !has_lane_ && p.slots.empty() && p.constants.empty() && p.columns > elements;
    if (is_flat) p.tile_columns = std::min<int64_t>((p.columns + 7) / 8, 1 << 15) / 64 * 64 + 64;
    const auto numel = static_cast<double>(checked_numel(sizes_));
    p.parts = parallel_parts(p.tiles(), cost_ns_ * numel / static_cast<double>(p.tiles()), threads);
    p.part_bytes = align(static_cast<size_t>(bytes));
    p.scratch_bytes = p.part_bytes * static_cast<size_t>(p.parts);
    find_overwrites();
    p.cost.flops = numel * static_cast<double>(steps_.size());
    for (const Strides& s : streams_) {
      double elements_of_stream = 1;
      for (size_t d = 0; d < sizes_.size(); ++d)
        elements_of_stream *= s.strides[d] == 0 ? 1 : static_cast<double>(sizes_[d]);
      p.cost.bytes +=
          elements_of_stream * static_cast<double>(p.streams[static_cast<size_t>(&s - streams_.data())].element_size);
    }
    return std::move(program_);
  }

  // Output 0 may lie on an input of its shape that nothing reads after output 0 was written.
  void find_overwrites() {
    TileProgram& p = *program_;
    const int target = output_stream_[0];
    if (space(outputs_[0]) != Space::kFull) return;
    size_t first_write = 0;
    while (first_write < p.instructions.size() && p.instructions[first_write].out != target) ++first_write;
    for (size_t s = 0; s < p.streams.size(); ++s) {
      const TileStream& stream = p.streams[s];
      if (stream.input < 0 || stream.input >= 32 ||
          !(streams_[s].strides == streams_[static_cast<size_t>(target)].strides))
        continue;
      bool fits_memory = false, is_read_elsewhere = false;
      for (const BuilderValue& value : values_) {
        if (value.step >= 0 || value.input != stream.input) continue;
        fits_memory = value.tensor.dtype() == metas_[0].dtype() && value.tensor.numel() == metas_[0].numel();
      }
      for (size_t other = 0; other < p.streams.size(); ++other)
        is_read_elsewhere = is_read_elsewhere || (other != s && p.streams[other].input == stream.input);
      for (size_t k = first_write + 1; k < p.instructions.size(); ++k) {
        const TileInstruction& i = p.instructions[k];
        const int address = static_cast<int>(s);
        is_read_elsewhere = is_read_elsewhere || i.a == address || i.b == address || i.c == address;
      }
      if (fits_memory && !is_read_elsewhere) p.may_overwrite |= 1u << stream.input;
    }
  }

  const std::vector<BuilderValue>& values_;
  const std::vector<Step>& steps_;
  std::span<const int> outputs_;
  std::span<const Tensor> metas_;
  bool has_lane_ = false;
  Dims sizes_, row_sizes_, dropped_sizes_;
  std::vector<Space> spaces_;
  double cost_ns_ = 0;

  std::unique_ptr<TileProgram> program_;
  std::vector<Strides> streams_;
  std::vector<int> output_stream_;
  std::map<std::pair<int, int>, int> stream_of_;  // (value, kind of use)
  std::vector<int64_t> nest_sizes_;
  std::vector<std::vector<int64_t>> nest_strides_;
  std::vector<Buffer> buffers_;
  std::map<std::tuple<int, DType, bool>, int> cached_;
  std::map<std::tuple<int64_t, DType, bool>, int> constant_of_;
  std::vector<int> addresses_;  // of computed values
};

}  // namespace

std::unique_ptr<ops::PreparedCall> TileBuilder::finish(std::span<const int> outputs, std::span<const Tensor> metas,
                                                       int threads) {
  return Compiler(values_, steps_, outputs, metas).compile(threads);
}

}  // namespace tensord::kernels
