// Memory: an allocator of the program's own, and a tensor that two processes share.
#include <tensord/tensord.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

using namespace tensord;

// Where all tensors have their memory from while it is set.
class Arena final : public StorageAllocator {
 public:
  DataPtr allocate(size_t size_bytes, Device device) override {
    void* data = std::aligned_alloc(kAlignment, (size_bytes + kAlignment - 1) / kAlignment * kAlignment);
    return {data, data, std::free, device};
  }
  DeleterFnPtr raw_deleter() const override { return std::free; }
};

int main() {
  static Arena arena;
  set_allocator(kCPU, &arena);
  const Tensor own = tensord::ones({4});
  set_allocator(kCPU, nullptr);
  std::printf("of the program: %.0f\n", sum(own).item_double());

  const Tensor x = tensord::arange(4).share_memory_();  // both processes have these numbers
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {  // any process with the other end of the socket
    const Tensor same = open_shared(receive_shared(ends[1]));
    same.mul_(same);
    _exit(0);
  }
  send_shared(ends[0], share(x));
  waitpid(child, nullptr, 0);
  for (int i = 0; i < 4; ++i) std::printf("%d ", x[i].item<int>());
  std::printf("are squares\n");
}
