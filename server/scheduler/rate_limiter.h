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

// Counted resources that the models of a server share: a run of a model holds what its configuration says, and waits
// while that is not free. Who has waited for and used least goes first: each grant moves a model on by its priority
// (1, or 2 for half as many grants, …), and the model that came the shortest way is next. It is waited for, also
// where others would fit before it, so that one that needs much is not passed over for ever. Thread-safe.
class RateLimiter {
 public:
  struct Resource {
    std::string name;
    bool is_global = false;
    uint32_t count = 0;
  };
  // How much there is of a resource, by its name and whether it is global.
  using Limits = std::map<std::pair<std::string, bool>, uint64_t>;

  // A resource without a limit has as much as the model that needs most of it.
  explicit RateLimiter(Limits limits = {}) : limits_(std::move(limits)) {}
  ~RateLimiter();
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  class Client;
  // What a run holds; gives it back at its end.
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

  // A model that takes part. Outlives its permits.
  class Client {
   public:
    ~Client();
    // None when it would have to wait.
    std::optional<Permit> try_acquire() { return limiter_.try_acquire(*this); }
    // Waits; none after stop(). `before`, the client's last one, is given back in the same step: who has more to run
    // waits with the others for their turn, and does not come too late for it.
    std::optional<Permit> acquire(std::optional<Permit> before = {}) { return limiter_.acquire(*this, before); }
    // Ends all waiting of this client, now and from now on.
    void stop() { limiter_.stop(*this); }

   private:
    friend class RateLimiter;
    Client(RateLimiter& limiter, std::vector<Resource> needs, uint32_t priority)
        : limiter_(limiter), needs_(std::move(needs)), step_(priority == 0 ? 1 : priority) {}
    RateLimiter& limiter_;
    const std::vector<Resource> needs_;
    const uint64_t step_;
    // All by limiter_.mutex_.
    uint64_t way_ = 0;
    bool is_stopped_ = false;
  };

  // Throws Error{kInvalidArgument} when a limit is below what a run needs, or a resource is global for one model and
  // not for another.
  std::unique_ptr<Client> add_client(const std::string& model, std::vector<Resource> needs, uint32_t priority);
  // How much of a resource is there, and how much of that is in use. A limit that is not of a global resource is that
  // of a global one of this name too, where it has no other.
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
    std::multimap<uint32_t, const Client*> needs;  // of the clients, the largest last
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
  uint64_t way_ TENSORD_GUARDED_BY(mutex_) = 0;            // of the last grant
};

}  // namespace tensord::server
