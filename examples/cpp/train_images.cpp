// 5. A small network that learns from a folder of images, one folder inside for each class: train_images IMAGES
// [EPOCHS]. Images are decoded, cropped and flipped by threads while the network trains.
#include <tensord/tensord.h>

#include <cstdio>
#include <cstdlib>

using namespace tensord;

std::shared_ptr<nn::Sequential> make_network(int64_t classes) {
  return nn::sequential(std::make_shared<nn::Conv2d>(3, 16, 3, nn::Conv2dOptions{.padding = 1}),
                        std::make_shared<nn::BatchNorm2d>(16), std::make_shared<nn::ReLU>(),
                        std::make_shared<nn::MaxPool2d>(2),
                        std::make_shared<nn::Conv2d>(16, 32, 3, nn::Conv2dOptions{.padding = 1}),
                        std::make_shared<nn::ReLU>(), std::make_shared<nn::AdaptiveAvgPool2d>(1),
                        std::make_shared<nn::Flatten>(), std::make_shared<nn::Linear>(32, classes));
}

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: train_images IMAGES [EPOCHS]\n"), 2;
  manual_seed(0);
  const vision::Normalize normalize({0.5, 0.5, 0.5}, {0.25, 0.25, 0.25});
  const vision::Compose training{{vision::RandomResizedCrop{32, {.scale = {0.6, 1.0}}}, vision::RandomHorizontalFlip(),
                                  vision::ToTensor(), normalize}};
  const vision::Compose plain{{vision::Resize(32), vision::CenterCrop{32}, vision::ToTensor(), normalize}};
  const vision::ImageFolder images(argv[1], {.transform = training}), same(argv[1], {.transform = plain});
  const auto network = make_network(static_cast<int64_t>(images.classes().size()));
  nn::CrossEntropyLoss loss_of;
  nn::AdamW optimizer(network->parameters(), {.lr = 0.01});
  nn::DataLoader loader(images, {.batch_size = 16, .shuffle = true, .workers = 2});
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 10;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (const auto& batch : loader) {
      const Tensor loss = loss_of((*network)(batch[0]), batch[1]);
      optimizer.zero_grad();
      autograd::backward(loss);
      optimizer.step();
    }
  }
  network->eval();
  const NoGradGuard guard;
  int64_t right = 0;
  nn::DataLoader all(same, {.batch_size = 16});
  for (const auto& batch : all)
    right += sum(to(eq(argmax((*network)(batch[0]), 1), batch[1]), DType::kInt64)).item_int();
  std::printf("right: %lld of %lld images of %zu classes\n", static_cast<long long>(right),
              static_cast<long long>(same.size()), same.classes().size());
} catch (const Error& error) {
  return std::fprintf(stderr, "train_images: %s\n", error.what()), 1;
}
