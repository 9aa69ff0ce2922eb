// Image folders, MNIST and CIFAR: what is written can be read, by loaders too; damaged files are refused by name.
#include "core/vision/datasets.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/files/idx.h"
#include "core/nn/data/data_loader.h"
#include "tests/vision/vision_cases.h"

namespace tensord::vision::datasets_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Datasets : public ::testing::Test {
 public:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  static std::string bytes_of(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  const fs::path folder_ = fs::temp_directory_path() / concat("vision_datasets_", getpid());
};

template <class Fn>
std::string error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(Datasets, ImageFolderEqualsTorchvisions) {
  const Value saved = load("image_folder");
  const ImageFolder images(cases_path("images"));
  const auto classes = nn::get_items(item(saved, "classes"), "classes");
  ASSERT_EQ(images.classes().size(), classes.size());
  for (size_t i = 0; i < classes.size(); ++i) EXPECT_EQ(images.classes()[i], classes[i].to_string());
  const auto paths = nn::get_items(item(saved, "paths"), "paths"),
             expected = nn::get_items(item(saved, "images"), "images");
  const auto targets = nn::get_items(item(saved, "targets"), "targets");
  ASSERT_EQ(images.size(), static_cast<int64_t>(paths.size()));
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(images.samples()[i].path, cases_path(paths[i].to_string()));
    const std::vector<Tensor> sample = images.get(static_cast<int64_t>(i));
    expect_same(sample[0], expected[i].to_tensor());
    EXPECT_EQ(sample[1].item_int(), targets[i].to_int());
  }
}

TEST_F(Datasets, LoadersOfFoldersDrawTheSameWithWorkers) {
  const ImageFolder images(cases_path("images"), {.transform = Compose{{RandomResizedCrop{8}, ToTensor()}}});
  std::vector<Tensor> first;
  for (const int workers : {0, 2}) {
    ops::Generator generator(3);
    const ops::GeneratorGuard guard(generator);
    nn::DataLoader loader(images, {.batch_size = 2, .shuffle = true, .workers = workers});
    size_t at = 0;
    for (const auto& batch : loader) {
      EXPECT_EQ(describe(batch[0]), "float32[2, 3, 8, 8]");
      if (workers == 0)
        first.push_back(batch[0]);
      else
        expect_same(batch[0], first.at(at++));
    }
  }
  EXPECT_EQ(first.size(), 2u);
}

TEST_F(Datasets, ImageFolderSaysWhatIsWrong) {
  EXPECT_THAT(error_of([&] { ImageFolder(folder_ / "none"); }),
              StartsWith((folder_ / "none").string() + ": cannot be read"));
  EXPECT_THAT(error_of([&] { ImageFolder(folder_.string()); }), HasSubstr("has no folders of classes"));
  fs::create_directories(folder_ / "empty");
  EXPECT_THAT(error_of([&] { ImageFolder(folder_.string()); }), HasSubstr("empty: the class has no images"));
  const std::string path = write("empty/x.webp", "x");
  EXPECT_EQ(error_of([&] { ImageFolder(folder_.string()); }),
            path + ": images of this kind are not read; .jpg, .jpeg and .png are");
  fs::remove(path);
  const std::string bad = write("empty/x.png", "no picture");
  const ImageFolder images(folder_.string());
  EXPECT_EQ(error_of([&] { images.get(0); }), bad + ": is neither a JPEG nor a PNG");
  fs::create_directory_symlink(folder_ / "empty", folder_ / "empty" / "circle");
  EXPECT_THAT(error_of([&] { ImageFolder(folder_.string()); }), HasSubstr("empty/circle: links lead in a circle"));
}

TEST_F(Datasets, Mnist) {
  const Tensor expected = item(load("datasets"), "mnist_images").to_tensor();
  const MNIST train(cases_path("mnist")), test(cases_path("mnist"), false, ToTensor());
  ASSERT_EQ(train.size(), 6);
  ASSERT_EQ(test.size(), 2);
  expect_same(train.images(), expected.as_view(Dims{6, 1, 28, 28}, Dims{784, 784, 28, 1}, 0));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(train.get(i)[1].item_int(), i);
  EXPECT_EQ(describe(test.get(1)[0]), "float32[1, 28, 28]");
  EXPECT_FLOAT_EQ(test.get(1)[0].data<float>()[5], static_cast<float>(expected.data<uint8_t>()[784 + 5]) / 255);
  EXPECT_THROW(train.get(6), Error);
  const Tensor i16 = files::read_idx(cases_path("i16.idx")), f32 = files::read_idx(cases_path("f32.idx"));
  EXPECT_EQ(describe(i16), "int16[2, 2]");
  EXPECT_EQ(i16.data<int16_t>()[2], 300);
  EXPECT_EQ(i16.data<int16_t>()[3], -32768);
  EXPECT_EQ(f32.data<float>()[1], -2.25f);
}

TEST_F(Datasets, Cifar) {
  const Value saved = load("datasets");
  const Tensor rows = item(saved, "rows").to_tensor(), targets = item(saved, "targets").to_tensor();
  for (const char* kind : {"cifar-10-batches-bin", "cifar-10-batches-py"}) {
    SCOPED_TRACE(kind);
    const CIFAR10 train(cases_path(kind)), test(cases_path(kind), false);
    ASSERT_EQ(train.size(), 25);
    ASSERT_EQ(test.size(), 5);
    expect_same(train.images(), rows.as_view(Dims{25, 3, 32, 32}, Dims{3072, 1024, 32, 1}, 0));
    expect_same(test.images(), rows.as_view(Dims{5, 3, 32, 32}, Dims{3072, 1024, 32, 1}, 25 * 3072));
    expect_same(train.targets(), targets.as_view(Dims{25}, Dims{1}, 0));
    expect_same(test.targets(), targets.as_view(Dims{5}, Dims{1}, 25));
  }
  for (const char* kind : {"cifar-100-binary", "cifar-100-python"}) {
    SCOPED_TRACE(kind);
    const CIFAR100 train(cases_path(kind)), test(cases_path(kind), false);
    ASSERT_EQ(train.size(), 20);
    expect_same(test.images(), rows.as_view(Dims{10, 3, 32, 32}, Dims{3072, 1024, 32, 1}, 20 * 3072));
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(train.targets().data<int64_t>()[i], targets.data<int64_t>()[i] * 9);
  }
  // The parent folder finds the binary version first.
  EXPECT_EQ(CIFAR10(cases_path("")).size(), 25);
}

TEST_F(Datasets, DamagedArraysAreRefused) {
  const auto idx_error = [&](const std::string& bytes) {
    const std::string path = write("x.idx", bytes);
    const std::string text = error_of([&] { files::read_idx(path); });
    return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
  };
  const auto idx = [](const std::string& head, const std::string& data) {
    return std::string("\0\0", 2) + head + data;
  };
  EXPECT_EQ(idx_error(idx(std::string("\x08\x01\0\0\0\x02", 6), "ab")), "no error");
  EXPECT_EQ(idx_error(idx(std::string("\x08\x01\0\0\0\x03", 6), "ab")), "has 2 bytes of data for [3] of uint8");
  EXPECT_EQ(idx_error(idx(std::string("\x08\x01\0\0\0\x01", 6), "ab")), "has 2 bytes of data for [1] of uint8");
  EXPECT_THAT(idx_error(idx("\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "ab")),
              HasSubstr("has 2 bytes of data"));
  EXPECT_EQ(idx_error(idx("\x07\x01", "abcd")), "is not an idx file: type 7 is not known");
  EXPECT_EQ(idx_error(idx("\x08\xff", "abcd")), "is not an idx file, or is truncated");
  EXPECT_EQ(idx_error("abcd"), "is not an idx file");
  EXPECT_EQ(idx_error(""), "is empty");
  const std::string packed = bytes_of(cases_path("mnist/raw/t10k-images-idx3-ubyte.gz"));
  EXPECT_THAT(idx_error(packed.substr(0, packed.size() / 2)), HasSubstr("damaged gzip file: it is truncated"));
  EXPECT_EQ(idx_error(packed + "x"), "bytes are left behind a gzip file");
  EXPECT_THROW(files::gunzip(packed, 100, "x"), Error);
}

TEST_F(Datasets, DamagedCifarIsRefused) {
  const std::string binary = bytes_of(cases_path("cifar-10-batches-bin/test_batch.bin"));
  const std::string pickled = bytes_of(cases_path("cifar-10-batches-py/test_batch"));
  const auto error = [&] { return error_of([&] { CIFAR10(folder_.string(), false); }); };
  EXPECT_THAT(error(), HasSubstr("cannot be opened"));
  const std::string path = write("test_batch.bin", binary.substr(0, 4000));
  EXPECT_EQ(error(), path + ": has 4000 bytes, which are not rows of 3073");
  write("test_batch.bin", "\x0a" + binary.substr(1));
  EXPECT_EQ(error(), path + ": sample 0 is of class 10 of 10");
  fs::remove(path);
  const std::string python = write("test_batch", pickled);
  EXPECT_EQ(error(), "no error");
  std::string other = pickled;
  other.replace(other.find("labels"), 6, "lobels");
  write("test_batch", other);
  EXPECT_EQ(error(), python + ": is not a dict with 'labels'");
  write("test_batch", std::string("\x80\x02") + "cos\nsystem\nU\x04true\x85R.");
  EXPECT_THAT(error(), HasSubstr("'os.system' is not allowed"));
  std::mt19937 random(2);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = pickled;
    if (i % 4 == 0)
      bytes.resize(random() % bytes.size());
    else
      // At the opcodes: before and after the pixels.
      for (int k = 0; k < 3; ++k) {
        const size_t at = random() % 300;
        bytes[at < 200 ? at : bytes.size() - 1 - (at - 200)] = static_cast<char>(random());
      }
    write("test_batch", bytes);
    const std::string text = error();
    EXPECT_TRUE(text == "no error" || text.starts_with(python)) << text;
  }
}

}  // namespace
}  // namespace tensord::vision::datasets_test
