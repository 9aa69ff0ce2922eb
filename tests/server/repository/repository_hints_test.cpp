// Files in a repository that are not served: each is reported, with a remedy.
#include <gmock/gmock.h>

#include "core/jit/runtime/module.h"
#include "server/repository/folder/layout_hints.h"
#include "tests/server/repository/repository_fixture.h"

namespace tensord::server::repository_hints_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class RepositoryHintsTest : public fixtures::RepositoryFixture {
 protected:
  void archive(const std::string& path) const { write(root() / path, "identity"); }
  // The reason for a model without versions, which also makes a strict server not ready.
  std::string reason_of(const std::string& model) {
    start({});
    EXPECT_FALSE(repository_->is_all_ready());
    const std::string text = states(model);
    EXPECT_TRUE(text.starts_with(" UNAVAILABLE: no version is there: ")) << text;
    EXPECT_EQ(error_of([&] { repository_->find(model, ""); }).first, ErrorCode::kUnavailable);
    return text.substr(text.find(": ", 15) + 2);
  }
};

TEST_F(RepositoryHintsTest, ARepositoryInTheRepository) {
  archive("group/resnet/1/model.pt");
  EXPECT_EQ(reason_of("group"),
            "'group/resnet' has versions: 'group' is a repository itself, and --model-repository takes its path");
}

TEST_F(RepositoryHintsTest, AModelsFolderAsTheRepository) {
  archive("1/model.pt");
  write(root() / "config.pbtxt", "");
  EXPECT_EQ(reason_of("1"),
            "'model.pt' lies in it, and its name is a version's: 'models' is a model's folder, and --model-repository "
            "takes the folder above that");
  EXPECT_THAT(hints_for_repository(root()), ElementsAre(HasSubstr("seems to be a model's folder")));
  fs::rename(root() / "config.pbtxt", root() / "config.pbtx");
  EXPECT_THAT(hints_for_repository(root()), ElementsAre(HasSubstr("seems to be a model's folder")));
}

TEST_F(RepositoryHintsTest, AnArchiveWithoutAVersion) {
  archive("resnet/model.pt");
  EXPECT_EQ(reason_of("resnet"),
            "'model.pt' lies in the model's folder: move it into a version's folder, as 'resnet/1/model.pt'");
}

TEST_F(RepositoryHintsTest, NamesThatAreNoVersions) {
  for (const char* name : {"v1", "version-2", "03", "1.5", "0"}) {
    archive(std::string("m/") + name + "/model.pt");
    EXPECT_EQ(reason_of("m"), concat("'", name,
                                     "' is not a version: a version's folder is a whole number without anything before "
                                     "it, as 'm/1'"));
    fs::remove_all(root() / "m");
  }
}

TEST_F(RepositoryHintsTest, OtherThings) {
  write(root() / "m" / "saved_model.h5", "");
  EXPECT_EQ(reason_of("m"), "its folder has 'saved_model.h5', expected 'm/1/model.pt'");
  fs::remove_all(root() / "m");
  write(root() / "n" / "saved_model.onnx", "");
  EXPECT_EQ(reason_of("n"),
            "'saved_model.onnx' lies in the model's folder: move it into a version's folder, as 'n/1/model.onnx'");
}

TEST_F(RepositoryHintsTest, FoldersThatNobodyHasFilledYetAreNoFault) {
  fs::create_directories(root() / "new");
  fs::create_directories(root() / "coming" / ".new-abc");
  fs::create_directories(root() / "lost+found" / "#12");
  add("good", "1");
  start({});
  EXPECT_TRUE(repository_->is_all_ready());
  EXPECT_EQ(states("new"), "not loaded");
}

TEST_F(RepositoryHintsTest, ALoadOfNoVersionIsNoLoad) {
  fs::create_directories(root() / "new");
  archive("flat/model.pt");
  add("m", "1");
  start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit});
  const auto [code, text] = error_of([&] { repository_->load({.name = "new", .config = {}, .files = {}}); });
  EXPECT_EQ(code, ErrorCode::kNotFound);
  EXPECT_EQ(text, "failed to load 'new', no version is available: its folder is empty");
  EXPECT_THAT(error_of([&] { repository_->load({.name = "flat", .config = {}, .files = {}}); }).second,
              HasSubstr("no version is available: 'model.pt' lies in the model's folder"));
  // Served versions stay, and a load still reports that there is nothing to load.
  repository_->load({.name = "m", .config = {}, .files = {}});
  fs::remove_all(root() / "m" / "1");
  EXPECT_EQ(error_of([&] { repository_->load({.name = "m", .config = {}, .files = {}}); }).first, ErrorCode::kNotFound);
  EXPECT_EQ(states("m"), "1 READY");
}

TEST_F(RepositoryHintsTest, AFileOfAnotherName) {
  archive("m/1/resnet.pt");
  archive("two/1/a.pt");
  archive("two/1/b.pth");
  fs::create_directories(root() / "none" / "1");
  write(root() / "other" / "1" / "model.h5", "");
  start({});
  EXPECT_THAT(states("m"),
              HasSubstr("1/model.pt is not there; the folder has 'resnet.pt': rename it to model.pt, or say "
                        "default_model_filename: \"resnet.pt\" in config.pbtxt"));
  EXPECT_THAT(states("two"), HasSubstr("the folder has 'a.pt', 'b.pth': name one of them model.pt"));
  EXPECT_THAT(states("none"), HasSubstr("the folder is empty"));
  EXPECT_THAT(states("other"), HasSubstr("the folder has 'model.h5' and no model"));
}

// Downloaded weights without an exported model.
TEST_F(RepositoryHintsTest, WeightsWithoutAModel) {
  const std::string gguf = "GGUF" + std::string(20, '\0');
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string safetensors =
      std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header + "1234";
  write(root() / "llama" / "1" / "llama-7b.Q4_0.gguf", gguf);
  write(root() / "named" / "1" / "model.pt", gguf);
  write(root() / "weights" / "1" / "net.safetensors", safetensors);
  write(root() / "file" / "1" / "model.pt", safetensors);
  write(root() / "onnx_gguf" / "1" / "model.onnx", gguf);
  write(root() / "onnx_file" / "1" / "model.onnx", safetensors);
  write(root() / "onnx_page" / "1" / "model.onnx", "<!DOCTYPE html><html></html>");
  write(root() / "onnx_zip" / "1" / "model.onnx", "PK\x03\x04" + std::string(26, '\0'));
  write(root() / "onnx_cut" / "1" / "model.onnx", "\x08\x07\x12\x40pytorch");
  write(root() / "hub" / "1" / "config.json", "{}");
  write(root() / "hub" / "1" / "model-00001-of-00002.safetensors", safetensors);
  write(root() / "inner" / "1" / "bert" / "config.json", "{}");
  write(root() / "inner" / "1" / "bert" / "pytorch_model.bin", "PK");
  write(root() / "above" / "config.json", "{}");
  write(root() / "above" / "model.safetensors", safetensors);
  EXPECT_THAT(hint_for_file(root() / "llama" / "1", "model.pt"),
              StartsWith("the folder has 'llama-7b.Q4_0.gguf', which is a GGUF file, weights of llama.cpp"));
  EXPECT_THAT(hint_for_file(root() / "weights" / "1", "model.pt"),
              StartsWith("the folder has 'net.safetensors', which is a safetensors file, weights without a model"));
  EXPECT_THAT(hint_for_file(root() / "hub" / "1", "model.pt"),
              StartsWith("the folder is a folder of Hugging Face's transformers"));
  EXPECT_THAT(hint_for_file(root() / "inner" / "1", "model.pt"),
              StartsWith("the folder has 'bert', which is a folder of Hugging Face's transformers"));
  EXPECT_THAT(hint_for_versions(root() / "above"),
              AllOf(HasSubstr("Hugging Face's transformers"), HasSubstr("expected 'above/1/model.pt2'")));
  for (const auto& [model, what] : {std::pair("named/1/model.pt", "is a GGUF file"),
                                    {"file/1/model.pt", "is a safetensors file"},
                                    {"onnx_gguf/1/model.onnx", "is a GGUF file"},
                                    {"onnx_file/1/model.onnx", "is a safetensors file"},
                                    {"onnx_page/1/model.onnx", "is a text file that begins with '<!DOCTYPE html>"},
                                    {"onnx_zip/1/model.onnx", "is a zip archive, as torch.jit.save"}}) {
    const fs::path file = root() / model;
    try {
      jit::Module::load(file.string());
      FAIL() << model;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
      EXPECT_THAT(error.what(), StartsWith(concat(file.string(), ": ", what)));
    }
  }
  try {
    jit::Module::load((root() / "onnx_cut" / "1" / "model.onnx").string());
    FAIL() << "a truncated ONNX model was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("ModelProto"));
  }
}

TEST_F(RepositoryHintsTest, WhatLiesBesideAServedVersionIsAWarning) {
  add("m", "1");
  archive("m/v2/model.pt");
  archive("m/resnet.pt");
  write(root() / "m" / "config.pbtx", "max_batch_size: 8");
  write(root() / "m" / "labels.txt", "a");
  add("plain", "1");
  write(root() / "plain" / "config.pbtxt", "");
  write(root() / "plain" / "labels.txt", "a");
  archive("loose.pt");
  add("zero", "1");
  archive("zero/0/model.pt");
  start({});
  EXPECT_THAT(states("zero"), HasSubstr("'0' is not a version"));
  EXPECT_EQ(
      states("m"),
      "1 READY: warning: 'v2' is not a version: a version's folder is a whole number; 'resnet.pt' lies beside the "
      "versions' folders and is not served; 'config.pbtx' is not read: a configuration is called config.pbtxt");
  EXPECT_EQ(states("plain"), "1 READY");
  EXPECT_THAT(hints_for_repository(root()), ElementsAre("'loose.pt' is not served: expected 'loose/1/model.pt'"));
  EXPECT_TRUE(repository_->is_all_ready());
}

TEST_F(RepositoryHintsTest, AFolderWhoseNameNobodyCanSay) {
  add("m", "1");
  archive("a\xff/1/model.pt");
  archive(".b\xff/1/model.pt");
  start({});
  EXPECT_EQ(states("m"), "1 READY");
  EXPECT_THAT(hints_for_repository(root()), ElementsAre("'a\xef\xbf\xbd' is not served: its name is not UTF-8"));
  EXPECT_TRUE(repository_->is_all_ready());
}

TEST_F(RepositoryHintsTest, NothingToSay) {
  add("m", "1");
  write(root() / "README.md", "");
  EXPECT_THAT(hints_for_repository(root()), IsEmpty());
  EXPECT_THAT(hints_for_model(root() / "m"), IsEmpty());
  EXPECT_THAT(hints_for_repository(root() / "nowhere"), IsEmpty());
  EXPECT_EQ(hint_for_versions(root() / "nowhere"), "its folder is empty");
}

// --disable-auto-complete-config.
TEST_F(RepositoryHintsTest, NothingIsCompletedWhereConfigurationsMustBeWhole) {
  const std::string input = "input { name: 'x' data_type: TYPE_FP32 dims: 1 }";
  const std::string output = "output { name: 'OUTPUT__0' data_type: TYPE_FP32 dims: 1 }";
  const std::pair<std::string, std::string> trials[] = {
      {"backend: 'pytorch' " + input + output, "1 READY"},
      {"platform: 'pytorch_libtorch' " + input + output, "1 READY"},
      {"none", "No such file or directory"},
      {input + output, "must specify 'platform' or 'backend' for 'm'"},
      {"backend: 'pytorch' " + output, "at least one input, none were specified"},
      {"backend: 'pytorch' " + input, "at least one output, none were specified"},
      {"backend: 'pytorch' input { name: 'x' dims: 1 } " + output, "model input 'x' must specify 'data_type'"},
      {"backend: 'pytorch' " + input + "output { name: 'y' data_type: TYPE_FP32 }", "output 'y' must specify 'dims'"}};
  for (const auto& [config, expected] : trials) {
    fs::remove_all(root() / "m");
    add("m", "1");
    if (config != "none") configure("m", config);
    start({.roots = {}, .only = {}, .needs_complete_configs = true});
    EXPECT_THAT(states("m"), HasSubstr(expected)) << config;
    EXPECT_EQ(repository_->is_all_ready(), expected == "1 READY") << config;
    start({});
    EXPECT_EQ(states("m"), "1 READY") << config;
  }
  // Configurations that a client sends with a load must be complete as well.
  configure("m", trials[0].first);
  start({.roots = {}, .only = {}, .mode = ControlMode::kExplicit, .needs_complete_configs = true});
  const auto load = [&](const char* config) {
    return error_of([&] { repository_->load({.name = "m", .config = config, .files = {}}); }).second;
  };
  EXPECT_THAT(load(R"({"backend": "pytorch"})"), HasSubstr("at least one input"));
  EXPECT_EQ(load(R"({"backend": "pytorch", "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [1]}],
                     "output": [{"name": "OUTPUT__0", "data_type": "TYPE_FP32", "dims": [1]}]})"),
            "no error");
}

}  // namespace
}  // namespace tensord::server::repository_hints_test
