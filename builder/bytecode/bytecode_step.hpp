#pragma once
// The bytecode of a build: each wheel is compiled as soon as the base and the wheel itself are
// there; layers are put together once all are.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "builder/base_image.hpp"
#include "builder/bytecode/segments.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

class BytecodeStep {
 public:
  struct Tools {
    const Lock& lock;
    Store& store;
    Progress& progress;
    bool unpack = true;
    std::function<WheelFile(std::size_t)> wheel;  ///< with its files; of one that is there
  };
  using Done = std::function<void(std::vector<Layer>)>;

  explicit BytecodeStep(Tools tools);

  /// Whether the wheel (an index of the lock's) must be read: the store has nothing of it.
  bool reads(std::size_t wheel);
  /// Begins with what is known already. All tasks belong to `group`; the heavy ones run on `work`,
  /// and one of them calls `done`, once, with all layers.
  void start(Pool& work, TaskGroup& group, Done done);
  /// Starts `workers` interpreters in the tree of these layers. `own`: the Python that the recipe
  /// brings along.
  void base_is_ready(const std::vector<Layer>& base, const Layer* own, unsigned workers);
  /// The wheel can be read now. From any thread, before or after `base_is_ready`.
  void wheel_is_ready(std::size_t wheel);
  /// Ends the interpreters; to be called once the group is done, while the pool still runs.
  void finish() { compiler_.reset(); }

 private:
  int python_minor() const;  ///< `11` of 3.11
  BytecodeCompiler::Setup setup(const Layer* own, unsigned workers) const;
  // With `mutex_` held:
  void compile(std::size_t wheel);
  void segment_is_ready(std::size_t wheel);
  void one_is_ready();

  void make_own_layer(std::size_t wheel);
  void make_layers();

  Tools tools_;
  std::unique_ptr<BaseTree> tree_;
  std::unique_ptr<BytecodeCompiler> compiler_;  // its interpreters run in that tree
  Pool* work_ = nullptr;
  TaskGroup* group_ = nullptr;
  Done done_;

  std::mutex mutex_;  // guards what follows while tasks run
  std::vector<std::optional<Segment>> segments_;
  std::vector<std::optional<Layer>> own_layers_;  // by wheel
  std::size_t left_ = 0;
  bool base_ready_ = false;
  std::vector<std::size_t> early_;  // wheels that came before the base
};

}  // namespace mlenv
