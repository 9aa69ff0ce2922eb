// Tensors shared between processes. The peer is this program, run again in a process of its own.
#include "core/tensor/memory/shared_tensor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/memory/caching_allocator.h"
#include "core/tensor/memory/shared_memory.h"

namespace tensord::shared_tensor_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

ErrorCode code_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kScriptRaised;
}

Tensor counted(const Dims& sizes, DType dtype = DType::kFloat32) {
  Tensor x = Tensor::empty(sizes, dtype);
  dispatch_all(dtype, "counted", [&]<class T>() {
    for (int64_t i = 0; i < x.numel(); ++i) x.data<T>()[i] = static_cast<T>(i);
  });
  return x;
}

std::vector<float> items_of(const Tensor& x) {
  const Tensor dense = x.to(DType::kFloat32).contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

struct Sockets {
  explicit Sockets(int type = SOCK_STREAM) {
    int made[2];
    EXPECT_EQ(socketpair(AF_UNIX, type, 0, made), 0);
    ours = std::make_unique<FileDescriptor>(made[0]);
    theirs = std::make_unique<FileDescriptor>(made[1]);
  }
  std::unique_ptr<FileDescriptor> ours, theirs;
};

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST(ShareMemory, MovesTheSameTensor) {
  const MemoryOwnerScope owner(memory_owner("shares"));
  const uint64_t before = cpu_allocator().live_bytes_of(current_memory_owner());
  const int descriptors = open_descriptors();
  {
    const Tensor x = counted({2, 3}), same = x;
    x.storage()->bump_version();
    const void* const place = x.raw_data();
    EXPECT_FALSE(is_shared(x));
    share_memory_(x);
    EXPECT_TRUE(is_shared(x));
    EXPECT_NE(x.raw_data(), place);
    EXPECT_EQ(same.raw_data(), x.raw_data());
    EXPECT_EQ(x.version(), 1u);  // tensors saved by autograd still have this version
    EXPECT_EQ(x.storage()->size_bytes(), 24u);
    EXPECT_THAT(items_of(x), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_EQ(cpu_allocator().live_bytes_of(current_memory_owner()), before + 24);
    const void* const shared_place = x.raw_data();
    share_memory_(x);
    EXPECT_EQ(x.raw_data(), shared_place);
    const Tensor row = x.as_view(Dims{3}, Dims{1}, 3);
    EXPECT_TRUE(is_shared(row));
    share_memory_(row);  // already shared, whoever else holds it
    EXPECT_FALSE(is_shared(x.clone()));
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(cpu_allocator().live_bytes_of(current_memory_owner()), before);
}

TEST(ShareMemory, OfOthersIsRefused) {
  const Tensor x = counted({4});
  {
    const Tensor view = x.as_view(Dims{2}, Dims{1}, 1);
    for (const Tensor& one : {x, view}) {
      EXPECT_EQ(code_of([&] { share_memory_(one); }), ErrorCode::kFailedPrecondition);
      EXPECT_THAT(error_of([&] { share(one); }), HasSubstr("is held by 1 more"));
      EXPECT_FALSE(is_shared(one));
    }
  }
  share_memory_(x);
  EXPECT_TRUE(is_shared(x));
  EXPECT_THAT(error_of([] { share_memory_(Tensor()); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([] { share_memory_(Tensor::meta(Dims{1}, DType::kFloat32)); }), HasSubstr("without memory"));
  EXPECT_FALSE(is_shared(Tensor::meta(Dims{1}, DType::kFloat32)));
}

TEST(ShareMemory, WithoutElements) {
  const Tensor x = Tensor::empty(Dims{0, 3}, DType::kInt64);
  const Tensor y = open_shared(share(x));
  EXPECT_TRUE(is_shared(x));
  EXPECT_EQ(x.storage()->size_bytes(), 0u);
  EXPECT_EQ(y.sizes(), (Dims{0, 3}));
}

TEST(ShareMemory, TooMuchIsAnError) {
  EXPECT_EQ(code_of([] { allocate_storage_from(shared_memory_allocator(), size_t{1} << 50); }),
            ErrorCode::kResourceExhausted);
  void* const data = shared_memory_allocator().raw_allocate(100);
  std::memset(data, 1, 100);
  shared_memory_allocator().raw_deallocate(data);
}

TEST(OpenShared, IsTheSameMemory) {
  const Tensor x = counted({3, 4});
  share_memory_(x);
  const Tensor part = x.as_view(Dims{2, 2}, Dims{1, 4}, 5);
  const Tensor y = open_shared(share(part));
  EXPECT_THAT(items_of(y), ElementsAre(5, 9, 6, 10));
  EXPECT_NE(y.raw_data(), part.raw_data());
  y.data<float>()[0] = -1;
  EXPECT_EQ(part.data<float>()[0], -1);
  const Tensor z = open_shared(share(y));  // passed on
  EXPECT_TRUE(is_shared(z));
  EXPECT_EQ(z.storage()->size_bytes(), 48u);
  EXPECT_THAT(items_of(z), ElementsAre(-1, 9, 6, 10));
}

TEST(OpenShared, WhatASealForbidsIsReadOnly) {
  const Tensor x = counted({4});
  SharedTensor sent = share(x);
  const std::string path = "/proc/self/fd/" + std::to_string(sent.file->get());
  sent.file = std::make_shared<FileDescriptor>(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const Tensor y = open_shared(sent);
  EXPECT_FALSE(y.storage()->is_writable());
  EXPECT_THAT(items_of(y), ElementsAre(0, 1, 2, 3));
}

// A descriptor that a malicious peer could send.
std::shared_ptr<const FileDescriptor> strange_file(size_t bytes, unsigned seals, bool is_filled = true) {
  auto file = std::make_shared<FileDescriptor>(memfd_create("strange", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file->get(), static_cast<off_t>(bytes)), 0);
  EXPECT_TRUE(!is_filled || posix_fallocate(file->get(), 0, static_cast<off_t>(bytes)) == 0);
  EXPECT_EQ(fcntl(file->get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(OpenShared, StrangeDescriptors) {
  const auto open_file = [](std::shared_ptr<const FileDescriptor> file, uint64_t bytes = 4096) {
    return error_of([&] { open_shared({std::move(file), bytes, {4}, {1}, 0, DType::kFloat32}); });
  };
  EXPECT_EQ(open_file(strange_file(4096, F_SEAL_SHRINK)), "no error");
  EXPECT_THAT(open_file(nullptr), HasSubstr("no descriptor"));
  EXPECT_THAT(open_file(std::make_shared<FileDescriptor>(-1)), HasSubstr("Bad file descriptor"));
  // The peer could truncate it during a read.
  EXPECT_THAT(open_file(strange_file(4096, F_SEAL_GROW)), HasSubstr("not sealed"));
  // It was truncated before it arrived.
  EXPECT_THAT(open_file(strange_file(100, F_SEAL_SHRINK)), HasSubstr("4096 bytes are wanted, the descriptor has 100"));
  EXPECT_THAT(open_file(strange_file(4096, F_SEAL_SHRINK), 0), HasSubstr("0 bytes are wanted"));
  EXPECT_THAT(open_file(strange_file(4096, F_SEAL_SHRINK), ~uint64_t{0}), HasSubstr("bytes are wanted"));
  // Much address space, no memory.
  EXPECT_THAT(open_file(strange_file(size_t{1} << 40, F_SEAL_SHRINK, false), 1 << 20), HasSubstr("no memory"));
  EXPECT_THAT(open_file(std::make_shared<FileDescriptor>(open("/dev/zero", O_RDWR))),
              HasSubstr("not one of anonymous"));
  EXPECT_THAT(open_file(std::make_shared<FileDescriptor>(open("/proc/self/exe", O_RDONLY))),
              HasSubstr("not one of anonymous"));
  const Sockets sockets;
  EXPECT_THAT(open_file(std::make_shared<FileDescriptor>(dup(sockets.ours->get()))), HasSubstr("not one of anonymous"));
}

TEST(OpenShared, StrangeShapes) {
  const SharedTensor good = share(counted({4, 4}));
  const auto with = [&](const std::function<void(SharedTensor&)>& change) {
    SharedTensor bad = good;
    change(bad);
    return error_of([&] { open_shared(bad); });
  };
  EXPECT_EQ(with([](SharedTensor&) {}), "no error");
  EXPECT_THAT(with([](SharedTensor& s) { s.sizes = {4, 5}; }), HasSubstr("lies outside"));
  EXPECT_THAT(with([](SharedTensor& s) { s.sizes = {-1, 4}; }), HasSubstr("-1"));
  EXPECT_THAT(with([](SharedTensor& s) { s.sizes = {4}; }), HasSubstr("1 sizes but 2 strides"));
  EXPECT_THAT(with([](SharedTensor& s) { s.strides = {-4, 1}; }), HasSubstr("lies outside"));
  EXPECT_THAT(with([](SharedTensor& s) { s.strides = {kMax, 1}; }), HasSubstr("lies outside"));
  EXPECT_THAT(with([](SharedTensor& s) { s.sizes = {kMax, kMax}; }), HasSubstr("overflow"));
  EXPECT_THAT(with([](SharedTensor& s) { s.sizes = {kMax, 1}, s.strides = {0, 1}; }), HasSubstr("overflow"));
  EXPECT_THAT(with([](SharedTensor& s) { s.offset = 1; }), HasSubstr("lies outside"));
  EXPECT_THAT(with([](SharedTensor& s) { s.offset = -1; }), HasSubstr("negative"));
  EXPECT_THAT(with([](SharedTensor& s) { s.offset = kMax; }), HasSubstr("lies outside"));
  EXPECT_THAT(with([](SharedTensor& s) { s.offset = kMax, s.sizes = {0}, s.strides = {1}; }),
              HasSubstr("lies outside"));
  EXPECT_THAT(with([](SharedTensor& s) { s.dtype = DType::kFloat64; }), HasSubstr("lies outside"));
  for (const int dtype : {-1, 8, 12, 16, 127})
    EXPECT_NE(with([&](SharedTensor& s) { s.dtype = static_cast<DType>(dtype); }), "no error") << dtype;
  EXPECT_THAT(with([](SharedTensor& s) { s.dtype = DType::kBool; }), HasSubstr("neither 0 nor 1"));
}

TEST(SharedTensor, WhatComesIsLookedAt) {
  const SharedTensor sent = share(counted({4}));
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const Sockets sockets(type);
    send_shared(sockets.ours->get(), sent);
    EXPECT_THAT(items_of(open_shared(receive_shared(sockets.theirs->get()))), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(code_of([&] { receive_shared(sockets.theirs->get(), 1); }), ErrorCode::kDeadlineExceeded);
  }
  const int descriptors = open_descriptors();
  {  // Bytes without a descriptor, then end of stream.
    Sockets sockets;
    const std::string text(1056, 'x');
    ASSERT_EQ(write(sockets.ours->get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(code_of([&] { receive_shared(sockets.theirs->get()); }), ErrorCode::kDataLoss);
    ASSERT_EQ(write(sockets.ours->get(), text.data(), 10), 10);
    sockets.ours.reset();
    EXPECT_EQ(code_of([&] { receive_shared(sockets.theirs->get()); }), ErrorCode::kDataLoss);
    EXPECT_EQ(code_of([&] { receive_shared(sockets.theirs->get()); }), ErrorCode::kUnavailable);
    EXPECT_EQ(code_of([&] { send_shared(sockets.theirs->get(), sent); }), ErrorCode::kUnavailable);
  }
  for (const size_t count : {2, 20}) {  // more descriptors than one, or than the receiver reads
    const Sockets sockets;
    std::vector<char> control(CMSG_SPACE(sizeof(int) * count));
    char byte = 't';
    iovec part{&byte, 1};
    msghdr head{};
    head.msg_iov = &part;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * count);
    const std::vector<int> files(count, sent.file->get());
    std::memcpy(CMSG_DATA(rights), files.data(), sizeof(int) * count);
    ASSERT_EQ(sendmsg(sockets.ours->get(), &head, 0), 1);
    EXPECT_EQ(code_of([&] { receive_shared(sockets.theirs->get()); }), ErrorCode::kDataLoss);
  }
  EXPECT_EQ(open_descriptors(), descriptors);
}

// The other process: doubles each received tensor, and sends one of its own.
TEST(SharedTensorPeer, Serves) {
  const char* const socket = std::getenv("TENSORD_TEST_SOCKET");
  if (!socket) GTEST_SKIP() << "for another process";
  const FileDescriptor own(std::atoi(socket));
  const Tensor got = open_shared(receive_shared(own.get()));
  for (int64_t i = 0; i < got.sizes()[0]; ++i) got.data<float>()[i * got.strides()[0]] *= 2;
  send_shared(own.get(), share(counted({3}, DType::kInt64)));
}

TEST(SharedTensor, BetweenTwoProcesses) {
  const Tensor x = counted({8});
  share_memory_(x);
  const Tensor odd = x.as_view(Dims{4}, Dims{2}, 1);
  Sockets sockets;
  const std::string socket = std::to_string(sockets.theirs->get());
  const pid_t child = fork();
  if (child == 0) {
    setenv("TENSORD_TEST_SOCKET", socket.c_str(), 1);
    execl("/proc/self/exe", "shared_tensor_test", "--gtest_filter=SharedTensorPeer.*", nullptr);
    _exit(99);
  }
  ASSERT_GT(child, 0);
  sockets.theirs.reset();
  send_shared(sockets.ours->get(), share(odd));
  const Tensor theirs = open_shared(receive_shared(sockets.ours->get()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(items_of(x), ElementsAre(0, 2, 2, 6, 4, 10, 6, 14));
  EXPECT_THAT(items_of(theirs), ElementsAre(0, 1, 2));  // its process has exited
}

}  // namespace
}  // namespace tensord::shared_tensor_test
