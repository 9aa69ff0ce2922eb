// The Gloo backend, a shared library of its own: see ../module_interface.h. Gloo sees bytes and a reduction function.
// Its exceptions are translated to Error here.
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/distributed/gloo/module/abortable.h"
#include "core/distributed/gloo/module_interface.h"

namespace tensord::distributed {
namespace {

Milliseconds left(SteadyTime deadline) {
  return std::max(Milliseconds(1), std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now()));
}

// Strips the source line that Gloo prepends to its messages.
std::string text_of(const std::exception& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}

template <class Fn>
decltype(auto) with_our_errors(const Fn& fn) {
  try {
    return fn();
  } catch (const Error&) {
    throw;
  } catch (const gloo::Exception& error) {
    const std::string text = text_of(error);
    const bool is_late = text.find("imed out") != std::string::npos;
    fail(is_late ? ErrorCode::kDeadlineExceeded : ErrorCode::kUnavailable, "gloo: ", text);
  } catch (const std::exception& error) {
    fail(ErrorCode::kInternal, "gloo: ", text_of(error));
  }
}

// Adapts our store to Gloo's interface.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  explicit GlooStore(std::shared_ptr<distributed::Store> store) : store_(std::move(store)) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_->get("gloo/" + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, store_->timeout()); }
  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
    std::vector<std::string> names;
    for (const std::string& key : keys) names.push_back("gloo/" + key);
    store_->wait(names, timeout);
  }

 private:
  const std::shared_ptr<distributed::Store> store_;
};

// Gloo derives an element's size from its type.
template <class Fn>
void with_element_type(size_t size_bytes, const Fn& fn) {
  switch (size_bytes) {
    case 1: return fn.template operator()<std::array<char, 1>>();
    case 2: return fn.template operator()<std::array<char, 2>>();
    case 4: return fn.template operator()<std::array<char, 4>>();
    case 8: return fn.template operator()<std::array<char, 8>>();
    case 16: return fn.template operator()<std::array<char, 16>>();
    default: fail(ErrorCode::kUnimplemented, "gloo: elements of ", size_bytes, " bytes");
  }
}

void copy_bytes(std::byte* to, const std::byte* from, size_t count) {
  if (count > 0) std::memcpy(to, from, count);
}

char* chars(const std::byte* bytes) { return reinterpret_cast<char*>(const_cast<std::byte*>(bytes)); }

class GlooTransfer final : public Transfer {
 public:
  // An empty message is sent as one unused byte.
  GlooTransfer(gloo::Context& context, std::byte* data, size_t size_bytes, bool sends)
      : buffer_(context.createUnboundBuffer(size_bytes ? data : &nothing_, std::max<size_t>(1, size_bytes))),
        sends_(sends) {}
  gloo::transport::UnboundBuffer& buffer() { return *buffer_; }

  int wait(SteadyTime deadline) override {
    return with_our_errors([&] {
      int peer = -1;
      const bool is_done = sends_ ? buffer_->waitSend(&peer, left(deadline)) : buffer_->waitRecv(&peer, left(deadline));
      if (!is_done) fail(ErrorCode::kCancelled, "gloo: the message was canceled");
      return peer;
    });
  }

 private:
  std::byte nothing_{};
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  const bool sends_;
};

class GlooBackend final : public Backend {
 public:
  GlooBackend(std::shared_ptr<gloo::transport::Device> device, std::shared_ptr<Store> store, int rank, int size,
              Milliseconds timeout)
      : rank_(rank), size_(size) {
    with_our_errors([&] {
      context_ = std::make_shared<AbortableContext>(rank, size);
      context_->setTimeout(timeout);
      GlooStore keys(std::move(store));
      if (size > 1) context_->connect(keys, std::move(device));
    });
  }

  std::string name() const override { return "gloo"; }

  void broadcast(std::byte* data, size_t size_bytes, int root, const BackendCall& call) override {
    if (size_ == 1 || size_bytes == 0) return;
    run<gloo::BroadcastOptions>(call, [&](gloo::BroadcastOptions& options) {
      options.setOutput(chars(data), size_bytes);
      options.setRoot(root);
      gloo::broadcast(options);
    });
  }

  // Always the ring algorithm, whatever the size: it gives the same bits as PyTorch.
  void all_reduce(std::byte* data, const Elements& elements, const BackendCall& call) override {
    if (size_ == 1 || elements.count == 0) return;
    with_element_type(elements.size_bytes, [&]<class T>() {
      run<gloo::AllreduceOptions>(call, [&](gloo::AllreduceOptions& options) {
        options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
        options.setOutput(reinterpret_cast<T*>(data), elements.count);
        options.setReduceFunction(elements.reduce);
        gloo::allreduce(options);
      });
    });
  }

  void reduce(std::byte* data, const Elements& elements, int root, const BackendCall& call) override {
    if (size_ == 1 || elements.count == 0) return;
    // Gloo writes to the outputs of all ranks.
    std::vector<std::byte> scratch(rank_ == root ? 0 : elements.count * elements.size_bytes);
    with_element_type(elements.size_bytes, [&]<class T>() {
      run<gloo::ReduceOptions>(call, [&](gloo::ReduceOptions& options) {
        if (rank_ != root) options.setInput(reinterpret_cast<T*>(data), elements.count);
        options.setOutput(reinterpret_cast<T*>(rank_ == root ? data : scratch.data()), elements.count);
        options.setReduceFunction(elements.reduce);
        options.setRoot(root);
        gloo::reduce(options);
      });
    });
  }

  void all_gather(const std::byte* in, std::byte* out, std::span<const size_t> sizes,
                  const BackendCall& call) override {
    if (std::accumulate(sizes.begin(), sizes.end(), size_t{0}) == 0) return;
    if (size_ == 1) return copy_bytes(out, in, sizes[0]);
    run<gloo::AllgathervOptions>(call, [&](gloo::AllgathervOptions& options) {
      options.setInput(chars(in), sizes[static_cast<size_t>(rank_)]);
      options.setOutput(chars(out), std::vector<size_t>(sizes.begin(), sizes.end()));
      gloo::allgatherv(options);
    });
  }

  void gather(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    if (size_bytes == 0) return;
    if (size_ == 1) return copy_bytes(out, in, size_bytes);
    run<gloo::GatherOptions>(call, [&](gloo::GatherOptions& options) {
      options.setInput(chars(in), size_bytes);
      if (rank_ == root) options.setOutput(chars(out), size_bytes * static_cast<size_t>(size_));
      options.setRoot(root);
      gloo::gather(options);
    });
  }

  void scatter(const std::byte* in, std::byte* out, size_t size_bytes, int root, const BackendCall& call) override {
    if (size_bytes == 0) return;
    if (size_ == 1) return copy_bytes(out, in, size_bytes);
    run<gloo::ScatterOptions>(call, [&](gloo::ScatterOptions& options) {
      std::vector<char*> parts;
      for (int rank = 0; rank_ == root && rank < size_; ++rank) {
        parts.push_back(chars(in) + static_cast<size_t>(rank) * size_bytes);
      }
      if (rank_ == root) options.setInputs(parts, size_bytes);
      options.setOutput(chars(out), size_bytes);
      options.setRoot(root);
      gloo::scatter(options);
    });
  }

  // Gloo has no reduce_scatter: every rank receives its parts from all others and sums them in rank order.
  void reduce_scatter(std::byte* in, std::byte* out, std::span<const size_t> counts, const Elements& elements,
                      const BackendCall& call) override {
    const size_t own = counts[static_cast<size_t>(rank_)], own_bytes = own * elements.size_bytes;
    std::vector<size_t> sent, received(counts.size(), own_bytes);
    for (const size_t count : counts) sent.push_back(count * elements.size_bytes);
    std::vector<std::byte> parts(own_bytes * counts.size());
    all_to_all(in, sent, parts.data(), received, call);
    copy_bytes(out, parts.data(), own_bytes);
    for (size_t rank = 1; rank < counts.size(); ++rank) elements.reduce(out, out, parts.data() + rank * own_bytes, own);
  }

  void all_to_all(const std::byte* in, std::span<const size_t> in_bytes, std::byte* out,
                  std::span<const size_t> out_bytes, const BackendCall& call) override {
    if (size_ == 1) return copy_bytes(out, in, in_bytes[0]);
    run<gloo::AlltoallvOptions>(call, [&](gloo::AlltoallvOptions& options) {
      options.setInput(chars(in), std::vector<int64_t>(in_bytes.begin(), in_bytes.end()));
      options.setOutput(chars(out), std::vector<int64_t>(out_bytes.begin(), out_bytes.end()));
      gloo::alltoallv(options);
    });
  }

  void barrier(const BackendCall& call) override {
    if (size_ == 1) return;
    run<gloo::BarrierOptions>(call, [&](gloo::BarrierOptions& options) { gloo::barrier(options); });
  }

  std::unique_ptr<Transfer> start_send(const std::byte* data, size_t size_bytes, int peer, uint64_t slot) override {
    return with_our_errors([&] {
      auto transfer = std::make_unique<GlooTransfer>(*context_, const_cast<std::byte*>(data), size_bytes, true);
      transfer->buffer().send(peer, slot);
      return transfer;
    });
  }

  std::unique_ptr<Transfer> start_recv(std::byte* data, size_t size_bytes, std::span<const int> peers,
                                       uint64_t slot) override {
    return with_our_errors([&] {
      auto transfer = std::make_unique<GlooTransfer>(*context_, data, size_bytes, false);
      transfer->buffer().recv(std::vector<int>(peers.begin(), peers.end()), slot);
      return transfer;
    });
  }

  void abort() override { context_->abort(); }

 private:
  template <class Options, class Fn>
  void run(const BackendCall& call, const Fn& fn) {
    with_our_errors([&] {
      Options options(context_);
      options.setTag(call.tag);
      options.setTimeout(left(call.deadline));
      fn(options);
    });
  }

  const int rank_, size_;
  std::shared_ptr<AbortableContext> context_;
};

class Module final : public GlooModule {
 public:
  const char* interface() const override { return kGlooInterface; }

  std::shared_ptr<void> make_device(const std::string& address) const override {
    return with_our_errors([&] {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = address;
      return gloo::transport::tcp::CreateDevice(attributes);
    });
  }

  std::unique_ptr<Backend> make_engine(std::shared_ptr<void> device, std::shared_ptr<Store> store, int rank, int size,
                                       Milliseconds timeout) const override {
    return std::make_unique<GlooBackend>(std::static_pointer_cast<gloo::transport::Device>(device), std::move(store),
                                         rank, size, timeout);
  }
};

}  // namespace
}  // namespace tensord::distributed

extern "C" const tensord::distributed::GlooModule* tensord_gloo_module() {
  static const tensord::distributed::Module module;
  return &module;
}
