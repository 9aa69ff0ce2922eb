// Parameters of 16 bits that are updated through float32 copies, compared with float32 parameters.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "core/autograd/variable.h"
#include "core/jit/archive/torch_file.h"
#include "core/nn/optim/optimizer.h"
#include "core/ops/run.h"
#include "tests/nn/nn_cases.h"

namespace tensord::nn::master_weights_test {
namespace {

using ops::Value;

// Steps of 16-bit parameters with master weights, and of float32 parameters with the same start and gradients.
class WithMasters {
 public:
  WithMasters(const std::string& kind, const Options& options, DType dtype) {
    // Larger than a block, column-major, and strided.
    for (const Dims& sizes : {Dims{5, 3}, Dims{37}, Dims{}, Dims{53, 61}, Dims{4, 6}, Dims{3, 7}}) {
      // One of them is float32.
      Tensor start = ops::call_by_name("aten::randn", sizes).to(sizes == Dims{37} ? DType::kFloat32 : dtype);
      if (sizes == Dims{4, 6}) start = ops::call_by_name("aten::t", start);
      if (sizes == Dims{3, 7}) start = ops::call_by_name("aten::slice.Tensor", start, 1, 0, 7, 2);
      low_.push_back(start);
      high_.push_back(low_.back().to(DType::kFloat32));
      autograd::set_requires_grad(low_.back());
      autograd::set_requires_grad(high_.back());
    }
    low_optimizer_ = make_optimizer(kind, {{.params = low_, .options = {}}}, options);
    low_optimizer_->use_master_weights();
    high_optimizer_ = make_optimizer(kind, {{.params = high_, .options = {}}}, options);
  }
  // The losses of `low` are multiplied by `scale`.
  void steps(int count, double scale = 1) {
    low_optimizer_->set_gradient_scale(scale);
    for (int step = 0; step < count; ++step) {
      for (size_t i = 0; i < low_.size(); ++i) {
        const NoGradGuard without_grad;
        const Tensor grad = ops::call_by_name("aten::randn", low_[i].sizes()).to(low_[i].dtype());
        const Tensor scaled = ops::call_by_name("aten::mul.Scalar", grad, scale);
        autograd::set_grad(low_[i], step % 7 == 3 && i == 1 ? Tensor() : scaled);
        autograd::set_grad(high_[i], step % 7 == 3 && i == 1 ? Tensor() : grad.to(DType::kFloat32));
      }
      low_optimizer_->step();
      high_optimizer_->step();
    }
  }
  void expect_rounded() const {
    for (size_t i = 0; i < low_.size(); ++i) EXPECT_EQ(difference(low_[i], high_[i].to(low_[i].dtype())), 0) << i;
  }
  std::vector<Tensor> low_, high_;
  std::unique_ptr<Optimizer> low_optimizer_, high_optimizer_;
};

TEST(MasterWeights, StepsAreThoseOfFloat32Rounded) {
  const std::vector<std::pair<std::string, Options>> kinds = {
      {"sgd", {{"lr", 0.01}}},
      {"sgd", {{"lr", 0.001}, {"momentum", 0.9}, {"weight_decay", 0.1}}},
      {"adam", {{"lr", 0.001}, {"amsgrad", true}}},
      {"adamw", {{"lr", 0.002}}},
      {"rmsprop", {{"lr", 0.001}, {"momentum", 0.5}, {"centered", true}}},
      {"adagrad", {{"lr", 0.01}, {"initial_accumulator_value", 0.1}}}};
  for (const auto& [kind, options] : kinds) {
    for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
      SCOPED_TRACE(concat(kind, " ", name_of(dtype)));
      WithMasters pair(kind, options, dtype);
      for (int i = 0; i < 10; ++i) {
        pair.steps(10);
        pair.expect_rounded();
      }
    }
  }
}

TEST(MasterWeights, StateDictHoldsThem) {
  const Options options{{"lr", 0.001}};
  WithMasters pair("adam", options, DType::kBFloat16);
  pair.steps(20);
  const std::string path = std::filesystem::temp_directory_path() / concat("masters_", getpid(), ".pt");
  jit::save_torch_file(path, pair.low_optimizer_->state_dict());
  const Value state = jit::load_torch_file(path);
  std::filesystem::remove(path);
  const auto& first = dict_of(item(state, "state")).items()[0].second;
  EXPECT_EQ(item(first, "master_param").to_tensor().dtype(), DType::kFloat32);
  EXPECT_EQ(item(first, "exp_avg").to_tensor().dtype(), DType::kFloat32);
  EXPECT_EQ(difference(item(first, "master_param").to_tensor(), pair.high_[0]), 0);
  // Another optimizer with the same parameters continues in the same way.
  pair.low_optimizer_ = make_optimizer("adam", {{.params = pair.low_, .options = {}}}, options);
  pair.low_optimizer_->use_master_weights();
  pair.low_optimizer_->load_state_dict(state);
  pair.steps(20);
  pair.expect_rounded();
  EXPECT_THROW(pair.low_optimizer_->use_master_weights(), Error);
}

TEST(MasterWeights, GradientsOfScaledLossesAreDividedInFloat32) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const char* kind : {"sgd", "adamw"}) {
      WithMasters pair(kind, {{"lr", 0.01}}, dtype);
      pair.steps(5);
      pair.steps(5, 256);
      pair.expect_rounded();
      pair.steps(5, 0.25);
      pair.steps(5);
      pair.expect_rounded();
    }
  }
}

TEST(MasterWeights, FollowWhatIsWritten) {
  WithMasters pair("sgd", {{"lr", 0.001}}, DType::kBFloat16);
  pair.steps(5);
  {
    const NoGradGuard without_grad;
    for (const auto* params : {&pair.low_, &pair.high_}) {
      const Tensor row = ops::call_by_name("aten::select.int", (*params)[0], 0, 2);
      ops::call_by_name("aten::fill_.Scalar", row, 1.5);
    }
  }
  pair.steps(5);
  pair.expect_rounded();
}

TEST(MasterWeights, OfFloat32NothingChanges) {
  const Tensor param = ops::call_by_name("aten::randn", Dims{3});
  autograd::set_requires_grad(param);
  SGD optimizer(std::vector<Tensor>{param});
  optimizer.use_master_weights();
  autograd::set_grad(param, param.clone());
  optimizer.step();
  EXPECT_EQ(find_item(dict_of(dict_of(item(optimizer.state_dict(), "state")).items()[0].second), "master_param"),
            nullptr);
  EXPECT_THROW(LBFGS(std::vector<Tensor>{param}).use_master_weights(), Error);
}

}  // namespace
}  // namespace tensord::nn::master_weights_test
