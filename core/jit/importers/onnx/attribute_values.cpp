#include "core/jit/importers/onnx/attribute_values.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace tensord::jit::onnx {
namespace {

constexpr std::string_view kFlag = "0 1", kPositive = ">=1", kNotNegative = ">=0";
// Operators with window padding.
constexpr std::string_view kWindows =
    "Conv ConvTranspose ConvInteger QLinearConv microsoft_QLinearConv microsoft_FusedConv DeformConv Col2Im MaxPool "
    "AveragePool LpPool microsoft_QLinearAveragePool microsoft_NhwcMaxPool";
constexpr std::string_view kPowers = "16 32 64 128 256 512 1024 2048 4096";

// By attribute. A value outside of this table might mean one thing to tensord and another to the file's author.
constexpr AttributeValues kValues[] = {
    {"accuracy_level", "", "0 1 2 3 4"},
    {"activation", "", "none silu swish"},
    {"activation", "microsoft_FusedConv", "Relu LeakyRelu Tanh Sigmoid Clip HardSigmoid"},
    {"activation", "microsoft_FusedGemm",
     "Relu LeakyRelu Tanh Sigmoid HardSigmoid Affine Elu ScaledTanh Softplus Softsign ThresholdedRelu"},
    {"activations", "",
     "Relu Tanh Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu Softsign Softplus"},
    {"aggregate_function", "ml_TreeEnsemble", "0 1 2 3"},
    {"aggregate_function", "ml_TreeEnsembleRegressor", "SUM AVERAGE MIN MAX"},
    {"align_corners", "", kFlag},
    {"allowzero", "", kFlag},
    {"antialias", "", kFlag},
    {"approximate", "", "none tanh"},
    {"auto_pad", "", "NOTSET SAME_UPPER SAME_LOWER VALID"},
    {"batch_dims", "", kNotNegative},
    {"bits", "", "2 4 8"},
    {"block_size", "microsoft_MatMulNBits microsoft_GatherBlockQuantized", kPowers},
    {"blocksize", "", kPositive},
    {"broadcast", "", kFlag},
    {"ceil_mode", "", kFlag},
    {"center_point_box", "", kFlag},
    {"channels_last", "", kFlag},
    {"clip", "LSTM GRU microsoft_DynamicQuantizeLSTM", ">0"},
    {"coordinate_transformation_mode", "Resize",
     "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn "
     "tf_crop_and_resize"},
    {"coordinate_transformation_mode", "RoiAlign", "half_pixel output_half_pixel"},
    {"count_include_pad", "", kFlag},
    {"detect_negative", "", kFlag},
    {"detect_positive", "", kFlag},
    {"dilations", "", kPositive},
    {"direction", "", "forward reverse bidirectional"},
    {"direction", "BitShift", "LEFT RIGHT"},
    {"do_rotary", "", kFlag},
    {"do_rotary", "microsoft_Attention microsoft_QAttention", "0"},
    {"equation", "", "*"},
    {"exclude_outside", "", kFlag},
    {"exclusive", "", kFlag},
    {"fmod", "", kFlag},
    {"group", "", kPositive},
    {"hidden_size", "", kPositive},
    {"input_forget", "", kFlag},
    {"interleaved", "", kFlag},
    {"inverse", "", kFlag},
    {"is_causal", "", kFlag},
    {"is_packed_batching", "", "0"},
    {"is_test", "", kFlag},
    {"keep_aspect_ratio_policy", "", "stretch not_larger not_smaller"},
    {"keepdims", "", kFlag},
    {"kernel_shape", "", kPositive},
    {"kv_num_heads", "", kPositive},
    {"largest", "", kFlag},
    {"layout", "", kFlag},
    {"linear_before_reset", "", kFlag},
    {"mask_index_type", "", kFlag},
    {"mode", "Resize Upsample", "nearest linear cubic"},
    {"mode", "DepthToSpace SpaceToDepth", "DCR CRD"},
    {"mode", "GridSample", "linear bilinear nearest cubic bicubic"},
    {"mode", "Pad", "constant reflect edge wrap"},
    {"mode", "RoiAlign", "avg max"},
    {"mode", "TensorScatter", "linear circular"},
    {"mode", "TfIdfVectorizer", "TF IDF TFIDF"},
    {"mode", "training_Momentum preview_Momentum", "standard nesterov"},
    {"nearest_mode", "", "round_prefer_floor round_prefer_ceil floor ceil"},
    {"new_axis", "", kFlag},
    {"nodes_missing_value_tracks_true", "", kFlag},
    {"nodes_modes", "ml_TreeEnsembleRegressor", "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"},
    {"noop_with_empty_axes", "", kFlag},
    {"norm", "", "MAX L1 L2"},
    {"num_groups", "", kPositive},
    {"num_heads",
     "Attention microsoft_Attention microsoft_QAttention microsoft_MultiHeadAttention "
     "microsoft_GroupQueryAttention RotaryEmbedding",
     kPositive},
    {"num_outputs", "", kPositive},
    {"offset_group", "", kPositive},
    {"onesided", "", kFlag},
    {"output_height", "", kNotNegative},
    {"output_padding", "", kNotNegative},
    {"output_shape", "ConvTranspose", kNotNegative},
    {"output_width", "", kNotNegative},
    {"p", "LpNormalization", "1 2"},
    {"padding_mode", "", "zeros border reflection"},
    {"pads", kWindows, kNotNegative},
    {"past_present_share_buffer", "", "0"},
    {"periodic", "", kFlag},
    {"pooled_shape", "", kPositive},
    {"post_transform", "", "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"},
    {"post_transform", "ml_LinearRegressor", "NONE"},
    {"post_transform", "ml_TreeEnsemble", "0 3 4"},
    {"q_num_heads", "", kPositive},
    {"qk_matmul_output_mode", "", "0 1 2 3"},
    {"reduction", "", "none mean sum"},
    {"reduction", "ScatterElements ScatterND", "none add mul max min"},
    {"reverse", "", kFlag},
    {"rotary_interleaved", "", kFlag},
    {"round_mode", "", "up down nearest"},
    {"sampling_ratio", "", kNotNegative},
    {"saturate", "", kFlag},
    {"scales", "Upsample", ">0"},
    {"select_last_index", "", kFlag},
    {"size", "LRN", kPositive},
    {"smooth_softmax", "", "-1 0 1"},
    {"sorted", "", kFlag},
    {"spatial", "", kFlag},
    {"storage_order", "", kFlag},
    {"strides", "", kPositive},
    {"targets", "", kPositive},
    {"training_mode", "", kFlag},
    {"transA", "", kFlag},
    {"transB", "", kFlag},
    {"transBatchA", "", kFlag},
    {"transBatchB", "", kFlag},
    {"unidirectional", "", kFlag},
    {"update_rule", "", "linear gated delta gated_delta"},
    {"upper", "", kFlag},
};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

bool contains(std::string_view text, std::string_view word) {
  const std::vector<std::string_view> all = words(text);
  return std::ranges::find(all, word) != all.end();
}

}  // namespace

std::span<const AttributeValues> attribute_values() { return kValues; }

const AttributeValues* find_attribute_values(std::string_view op, std::string_view attribute) {
  const AttributeValues* found = nullptr;
  for (const AttributeValues& row : kValues) {
    if (row.attribute != attribute) continue;
    if (contains(row.operators, op)) return &row;
    if (row.operators.empty()) found = &row;
  }
  return found;
}

std::vector<int64_t> numbers_of_values(const AttributeValues& row, const std::vector<std::string>& given) {
  const std::vector<std::string_view> known = words(row.values);
  std::vector<int64_t> out;
  for (const std::string& value : given) out.push_back(std::ranges::find(known, value) - known.begin());
  return out;
}

namespace {

// A range is ">=1" or ">0".
void check_number(std::string_view range, std::string_view name, double value) {
  const bool is_allowed = range == ">0" ? value > 0 : value >= (range == ">=1" ? 1 : 0);
  if (!is_allowed)
    fail(ErrorCode::kUnimplemented, "attribute '", name, "' is ", value, "; values that are taken: ", range);
}

}  // namespace

void check_attribute_values(std::string_view op, std::string_view name, const AttributeProto& attribute) {
  const AttributeValues* row = find_attribute_values(op, name);
  if (!row || row->values == "*") return;
  if (row->values.starts_with('>')) {
    const auto check = [&](auto value) { check_number(row->values, name, static_cast<double>(value)); };
    if (attribute.type == AttributeProto::kInt) check(attribute.i);
    if (attribute.type == AttributeProto::kFloat) check(attribute.f);
    std::ranges::for_each(attribute.ints, check);
    std::ranges::for_each(attribute.floats, check);
    return;
  }
  const auto check_value = [&](const std::string& value) {
    if (contains(row->values, value)) return;
    std::string known;
    for (const std::string_view word : words(row->values)) known += concat(known.empty() ? "" : ", ", word);
    fail(ErrorCode::kUnimplemented, "attribute '", name, "' is ", value.empty() ? "''" : value,
         "; values that are taken: ", known);
  };
  switch (attribute.type) {
    case AttributeProto::kInt: check_value(std::to_string(attribute.i)); break;
    case AttributeProto::kString: check_value(attribute.s); break;
    case AttributeProto::kInts:
      std::ranges::for_each(attribute.ints, [&](int64_t i) { check_value(std::to_string(i)); });
      break;
    case AttributeProto::kStrings: std::ranges::for_each(attribute.strings, check_value); break;
    default: break;  // other types are refused as such
  }
}

}  // namespace tensord::jit::onnx
