#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace tensord::server {

// Counted resources that the models of a server share (Triton's rate limiter). A run holds the resources that its
// model's configuration names, and waits until they are free. Grants are weighted: each adds the model's priority to
// its virtual time (priority 2 gets half as many grants as 1), and the waiting model with the least virtual time is
// next. No other model overtakes it, even if its resources are free, so that models with large needs are not starved.
// Thread-safe.
class RateLimiter {
 public:
  struct Resource {
    std::string name;
    bool is_global = false;
    uint32_t count = 0;
  };
  // Units of a resource, by its name and whether it is global.
  using Limits = std::map<std::pair<std::string, bool>, uint64_t>;

  // A resource without a limit has as many units as the model with the largest need asks for.
  explicit RateLimiter(Limits limits = {}) : limits_(std::move(limits)) {}
  ~RateLimiter();
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  class Client;
  // The resources of one run; releases them on destruction.
  class Permit {
   public:
    Permit(Permit&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(client_, other.client_);
      return *this;
    }
    ~Permit();

   private:
    friend class RateLimiter;
    explicit Permit(Client* client) : client_(client) {}
    Client* client_;
  };

  // One model. Must outlive its permits.
  class Client {
   public:
    ~Client();
    // None if it would have to wait.
    std::optional<Permit> try_acquire() { return limiter_.try_acquire(*this); }
    // Waits; none after stop(). Releases `before`, the client's previous permit, and queues for the next one in one
    // step, so that a busy model neither keeps its turn nor loses it.
    std::optional<Permit> acquire(std::optional<Permit> before = {}) { return limiter_.acquire(*this, before); }
    // Makes all current and future acquire() calls return none.
    void stop() { limiter_.stop(*this); }

   private:
    friend class RateLimiter;
    Client(RateLimiter& limiter, std::vector<Resource> needs, uint32_t priority)
        : limiter_(limiter), needs_(std::move(needs)), step_(priority == 0 ? 1 : priority) {}
    RateLimiter& limiter_;
    const std::vector<Resource> needs_;
    const uint64_t step_;
    // Guarded by limiter_.mutex_.
    uint64_t virtual_time_ = 0;
    bool is_stopped_ = false;
  };

  // Throws Error{kInvalidArgument} when a limit is below what a run needs, or a resource is global for one model and
  // not for another.
  std::unique_ptr<Client> add_client(const std::string& model, std::vector<Resource> needs, uint32_t priority);
  // Units that exist and units in use. The limit of a resource that is not global also applies to the global resource
  // of the same name, unless that has its own.
  std::pair<uint64_t, uint64_t> usage(const std::string& name, bool is_global) const;
  size_t waiting() const;

 private:
  using Key = std::pair<std::string, bool>;
  struct Waiter {
    Client* client;
    CondVar changed;
    bool has_permit = false;
  };
  struct Pool {
    uint64_t limit = 0;
    uint64_t used = 0;
    std::multimap<uint32_t, const Client*> needs;  // by client, the largest last
  };

  std::optional<Permit> try_acquire(Client& client);
  std::optional<Permit> acquire(Client& client, std::optional<Permit>& before);
  void stop(Client& client);
  void release(Client& client);
  void remove(Client& client);
  void update_limit(const Key& key, Pool& pool) const;
  Limits::const_iterator limit_of(const Key& key) const;
  bool fits(const Client& client) const TENSORD_REQUIRES(mutex_);
  void take(Client& client) TENSORD_REQUIRES(mutex_);
  void give_back(const Client& client) TENSORD_REQUIRES(mutex_);
  void grant_waiting() TENSORD_REQUIRES(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  std::map<Key, Pool> pools_ TENSORD_GUARDED_BY(mutex_);
  std::list<Waiter*> waiting_ TENSORD_GUARDED_BY(mutex_);  // in order of arrival
  uint64_t virtual_time_ TENSORD_GUARDED_BY(mutex_) = 0;   // of the last grant
};

}  // namespace tensord::server
