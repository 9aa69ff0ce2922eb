#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/nn/module.h"
#include "core/ops/op.h"

// PyTorch's losses and distances as modules: loss(input, target) returns one tensor. Options and their defaults are
// PyTorch's; an undefined tensor means no weight.
namespace tensord::nn {

enum class Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// One operator over the inputs and the options.
class Loss : public Module {
 public:
  Tensors forward(const Tensors& inputs) override;

 protected:
  // A tensor among the options; it is a buffer of the module.
  struct Weight {
    size_t option;
    std::string name;
    Tensor tensor;
  };
  Loss(std::string kind, const char* op, size_t inputs, std::vector<ops::Value> options,
       std::vector<Weight> weights = {});
  static ops::Value value(Reduction reduction) { return static_cast<int64_t>(reduction); }

 private:
  const ops::Op& op_;
  const size_t inputs_;
  std::vector<ops::Value> options_;
};

#define TENSORD_LOSS(NAME, OP)                                                                                 \
  struct NAME final : Loss {                                                                                   \
    explicit NAME(Reduction reduction = Reduction::kMean) : Loss(#NAME, "aten::" OP, 2, {value(reduction)}) {} \
  };
TENSORD_LOSS(MSELoss, "mse_loss")
TENSORD_LOSS(L1Loss, "l1_loss")
TENSORD_LOSS(SoftMarginLoss, "soft_margin_loss")
TENSORD_LOSS(MultiLabelMarginLoss, "multilabel_margin_loss")
#undef TENSORD_LOSS

struct CrossEntropyLoss final : Loss {
  explicit CrossEntropyLoss(const Tensor& weight = {}, int64_t ignore_index = -100,
                            Reduction reduction = Reduction::kMean, double label_smoothing = 0)
      : Loss("CrossEntropyLoss", "aten::cross_entropy_loss", 2,
             {ops::Value(), value(reduction), ignore_index, label_smoothing}, {{0, "weight", weight}}) {}
};
struct NLLLoss final : Loss {
  explicit NLLLoss(const Tensor& weight = {}, int64_t ignore_index = -100, Reduction reduction = Reduction::kMean)
      : Loss("NLLLoss", "aten::nll_loss_nd", 2, {ops::Value(), value(reduction), ignore_index},
             {{0, "weight", weight}}) {}
};
struct BCELoss final : Loss {
  explicit BCELoss(const Tensor& weight = {}, Reduction reduction = Reduction::kMean)
      : Loss("BCELoss", "aten::binary_cross_entropy", 2, {ops::Value(), value(reduction)}, {{0, "weight", weight}}) {}
};
struct BCEWithLogitsLoss final : Loss {
  explicit BCEWithLogitsLoss(const Tensor& weight = {}, Reduction reduction = Reduction::kMean,
                             const Tensor& pos_weight = {})
      : Loss("BCEWithLogitsLoss", "aten::binary_cross_entropy_with_logits", 2,
             {ops::Value(), ops::Value(), value(reduction)}, {{0, "weight", weight}, {1, "pos_weight", pos_weight}}) {}
};
struct SmoothL1Loss final : Loss {
  explicit SmoothL1Loss(Reduction reduction = Reduction::kMean, double beta = 1)
      : Loss("SmoothL1Loss", "aten::smooth_l1_loss", 2, {value(reduction), beta}) {}
};
struct HuberLoss final : Loss {
  explicit HuberLoss(Reduction reduction = Reduction::kMean, double delta = 1)
      : Loss("HuberLoss", "aten::huber_loss", 2, {value(reduction), delta}) {}
};
struct KLDivLoss final : Loss {
  explicit KLDivLoss(Reduction reduction = Reduction::kMean, bool log_target = false)
      : Loss("KLDivLoss", "aten::kl_div", 2, {value(reduction), log_target}) {}
};
struct PoissonNLLLoss final : Loss {
  explicit PoissonNLLLoss(bool log_input = true, bool full = false, double eps = 1e-8,
                          Reduction reduction = Reduction::kMean)
      : Loss("PoissonNLLLoss", "aten::poisson_nll_loss", 2, {log_input, full, eps, value(reduction)}) {}
};
struct HingeEmbeddingLoss final : Loss {
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::kMean)
      : Loss("HingeEmbeddingLoss", "aten::hinge_embedding_loss", 2, {margin, value(reduction)}) {}
};
// loss(first, second, target).
struct CosineEmbeddingLoss final : Loss {
  explicit CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::kMean)
      : Loss("CosineEmbeddingLoss", "aten::cosine_embedding_loss", 3, {margin, value(reduction)}) {}
};
struct MarginRankingLoss final : Loss {
  explicit MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::kMean)
      : Loss("MarginRankingLoss", "aten::margin_ranking_loss", 3, {margin, value(reduction)}) {}
};
// loss(anchor, positive, negative).
struct TripletMarginLoss final : Loss {
  explicit TripletMarginLoss(double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                             Reduction reduction = Reduction::kMean)
      : Loss("TripletMarginLoss", "aten::triplet_margin_loss", 3, {margin, p, eps, swap, value(reduction)}) {}
};
struct MultiMarginLoss final : Loss {
  explicit MultiMarginLoss(int64_t p = 1, double margin = 1, const Tensor& weight = {},
                           Reduction reduction = Reduction::kMean)
      : Loss("MultiMarginLoss", "aten::multi_margin_loss", 2, {p, margin, ops::Value(), value(reduction)},
             {{2, "weight", weight}}) {}
};
// loss(log_probs [steps, batch, classes], targets, input_lengths [batch], target_lengths [batch]).
struct CTCLoss final : Loss {
  explicit CTCLoss(int64_t blank = 0, Reduction reduction = Reduction::kMean, bool zero_infinity = false)
      : Loss("CTCLoss", "aten::ctc_loss.Tensor", 4, {blank, value(reduction), zero_infinity}) {}
};

// Distances: one operator of two tensors.
struct CosineSimilarity final : Loss {
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8)
      : Loss("CosineSimilarity", "aten::cosine_similarity", 2, {dim, eps}) {}
};
struct PairwiseDistance final : Loss {
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false)
      : Loss("PairwiseDistance", "aten::pairwise_distance", 2, {p, eps, keepdim}) {}
};

// Losses composed of several operators, as PyTorch composes them in Python.

// loss(input, target, var): the variance of each element, or of each row or sample.
class GaussianNLLLoss final : public Module {
 public:
  explicit GaussianNLLLoss(bool full = false, double eps = 1e-6, Reduction reduction = Reduction::kMean);
  Tensors forward(const Tensors& inputs) override;

 private:
  const bool full_;
  const double eps_;
  const Reduction reduction_;
};
class MultiLabelSoftMarginLoss final : public Module {
 public:
  explicit MultiLabelSoftMarginLoss(const Tensor& weight = {}, Reduction reduction = Reduction::kMean);
  Tensors forward(const Tensors& inputs) override;
  const Tensor weight;

 private:
  const Reduction reduction_;
};
// loss(anchor, positive, negative), with any distance of two tensors; undefined: PairwiseDistance.
class TripletMarginWithDistanceLoss final : public Module {
 public:
  using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
  explicit TripletMarginWithDistanceLoss(Distance distance = {}, double margin = 1, bool swap = false,
                                         Reduction reduction = Reduction::kMean);
  Tensors forward(const Tensors& inputs) override;

 private:
  const Distance distance_;
  const double margin_;
  const bool swap_;
  const Reduction reduction_;
};

}  // namespace tensord::nn
