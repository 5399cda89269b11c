#pragma once
// What stands behind solv::Pool, in libsolv's own types. For recipes/resolve/solv*.cpp only, which
// are compiled as C++17.
#include <map>
#include <string_view>
#include <vector>

#include <solv/pool.h>
#include <solv/queue.h>
#include <solv/repo.h>

#include "base/handle.hpp"
#include "recipes/resolve/solv.hpp"

namespace mlenv::solv {

using PoolHandle = Owned<pool_free>::of<::Pool>;

/// libsolv's own list, with an end.
class IdQueue {
 public:
  IdQueue() { queue_init(&queue_); }
  IdQueue(const IdQueue&) = delete;
  IdQueue& operator=(const IdQueue&) = delete;
  ~IdQueue() { queue_free(&queue_); }
  ::Queue* get() { return &queue_; }
  const Id* begin() const { return queue_.elements; }
  const Id* end() const { return queue_.elements + queue_.count; }
  void push(Id how, Id what) { queue_push2(&queue_, how, what); }

 private:
  ::Queue queue_{};
};

template <typename T>
Id raw(T id) {
  return static_cast<Id>(id);
}

inline std::string_view view(const char* text) {
  return text == nullptr ? std::string_view{} : text;
}

/// The keys are what `Facts` and the order of Depends are stored under.
struct Pool::State {
  PoolHandle pool{pool_create()};
  Id priority_key = 0;
  Id essential_key = 0;
  Id guarded_key = 0;
  Id depends_key = 0;
  std::map<Repo*, Origin> origins;

  Repo* add_repo(const Origin& origin);
  Solvable* solvable(PackageId id) const { return pool_id2solvable(pool.get(), raw(id)); }
  std::vector<DependencyId> dependencies(Offset list, Repo* repo, bool before_marker) const;
  std::vector<PackageId> provided(Id dependency) const;
  void split(Id dependency, std::vector<DependencyId>& out) const;
  void complete(Repodata* data, Id id, const Facts& facts) const;
};

}  // namespace mlenv::solv
