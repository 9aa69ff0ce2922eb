#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/prepared.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduce/row_kernel.h"

// Elementwise calls around calls along the last dimension, done together for known shapes: the
// iteration space is cut into tiles that stay in the first cache, and each call runs over a tile
// before the next tile is touched. Every call is done by the loop that does it alone, so the
// results are the same bits.
namespace tensord::kernels {

// Collects calls and compiles them. Values are numbered in the order they are added.
class TileBuilder {
 public:
  // With `is_alone` for one call, which may then join dimensions.
  explicit TileBuilder(bool is_alone = false) : is_alone_(is_alone) {}

  // A meta tensor is passed to each run, in the order of add_input calls; any other is a constant.
  int add_input(const Tensor& tensor);
  // Adds a call with one result. `operands` are pairs (argument, value) that are put into `arguments`. Returns the
  // value's number, or -1 if the call is not covered.
  int add_call(const ops::Op& op, std::vector<ops::Value> arguments, std::span<const std::pair<int, int>> operands);
  // Null if the calls do not form one program. `outputs` are values, `metas` describe the tensors to write.
  std::unique_ptr<ops::PreparedCall> finish(std::span<const int> outputs, std::span<const Tensor> metas, int threads);

  // An operand of a formula: a value, or a number when `value` is -1.
  struct Operand {
    int value = -1;
    ops::Scalar number = 0;
  };
  struct Step {
    bool is_row_kernel = false;
    // Of a formula.
    PointwiseCall call;
    std::array<Operand, 3> operands;
    // Of a call along the last dimension.
    RowKernel row_kernel;
    int input = -1;
    std::array<int, 2> extra = {-1, -1};
  };
  struct Value {
    Tensor tensor;   // meta, or the constant
    int input = -1;  // index among the inputs passed to each run
    int step = -1;   // index of the step that makes it; -1: an input or a constant
  };

 private:
  bool add_formula(const PointwiseMaker& make, std::span<const ops::Value> arguments,
                   std::span<const std::pair<int, int>> operands, Step& step);
  bool add_row_kernel(const RowKernelMaker& make, std::span<const ops::Value> arguments,
                      std::span<const std::pair<int, int>> operands, Step& step);

  bool is_alone_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  int inputs_ = 0;
};

// The prepared form of an operator as a program of one call; null if there is none.
std::unique_ptr<ops::PreparedCall> prepare_alone(const ops::PrepareArgs& args);

// The place of an operand while a tile is computed. A stream is memory of the caller that advances with each tile; a
// slot is scratch memory; a constant is a tile of one number.
struct TileStream {
  int input = -1, output = -1;  // of the run; neither: `data`
  const void* data = nullptr;
  int64_t element_size = 4;
  std::vector<int64_t> strides;           // of the outer dimensions, in bytes
  int64_t row_step = 0, column_step = 0;  // in bytes
};

struct TileInstruction {
  enum class Kind : uint8_t {
    kFormula,  // out = row(a, b, c)
    kRow,      // out = row_kernel(a; extra b, c), row by row
    kLoad,     // out = the strided stream a, dense and converted
    kStore,    // the strided stream out = a, of its dtype
    kConvert,  // out = a, converted
    kExpand,   // every row of out = its element of a
  };
  Kind kind;
  bool per_row = false;   // one element a row, not a row
  bool by_row = false;    // of a kFormula: a loop for each row, as an operand has one element for it
  bool is_fixed = false;  // of a kLoad: need not be repeated while the stream stays where it is
  DType from = DType::kFloat32, to = DType::kFloat32;
  int out = 0, a = 0, b = 0, c = 0;             // addresses
  std::array<int64_t, 4> steps = {0, 0, 0, 0};  // of these from row to row, in bytes; for by_row
  RowFn row = nullptr;
  Numbers numbers = {};
  RowKernel row_kernel = {};
};

// The compiled form. Addresses are numbered: streams, then slots, then constants.
class TileProgram final : public ops::PreparedCall {
 public:
  void run(const ops::KernelContext& context, const ops::PreparedRun& memory) const override;

  // Sizes of the outer dimensions; then rows and columns, and how many of them make a tile.
  std::vector<int64_t> outer;
  int64_t rows = 1, columns = 1, tile_rows = 1, tile_columns = 1;
  std::vector<TileStream> streams;
  std::vector<int64_t> slots;  // offsets in a part's scratch memory
  std::vector<std::vector<double>> constants;
  std::vector<TileInstruction> instructions;
  std::vector<Tensor> kept;  // constants that streams read
  int parts = 1;
  size_t part_bytes = 0;

  int64_t tiles() const;

 private:
  struct Cursor;
  void run_part(const ops::PreparedRun& memory, int part) const;
  void run_tile(char* const* at, Cursor& cursor, int64_t tile_rows, int64_t tile_columns) const;
};

// More operands than this are not covered.
inline constexpr size_t kMaxTileAddresses = 96;
inline constexpr size_t kMaxTileDims = 16;

}  // namespace tensord::kernels
