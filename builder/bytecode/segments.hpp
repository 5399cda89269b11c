#pragma once
// The bytecode of one wheel as a segment: whole tar entries, compressed, kept as a blob of its own,
// so that an image with one wheel more compiles that wheel alone. Layers are put together from
// segments.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/task_group.hpp"
#include "builder/bytecode/compiler.hpp"
#include "builder/wheel.hpp"
#include "images/store.hpp"

namespace mlenv {

struct Segment {
  std::optional<Digest> blob;  ///< nullopt: the wheel holds no Python source
  std::uint64_t size_bytes = 0;
  std::uint64_t tar_bytes = 0;
  std::vector<std::string> folders;  ///< of its files, sorted
};

/// nullopt when not made yet, or its blob is gone.
std::optional<Segment> find_segment(const Store& store, const Digest& key);

/// Compiles every .py below site-packages of the wheel, in batches on `pool`, and calls
/// `done` from one of its threads once the segment is in the store under `key`. All tasks belong to
/// `group`.
struct SegmentJob {
  WheelFile wheel;  ///< with its files
  Digest key;
  std::int64_t epoch = 0;
  int python_minor = 0;
};
struct SegmentTools {
  Store& store;
  BytecodeCompiler& compiler;
  Pool& pool;
  TaskGroup& group;
};
void make_segment(const SegmentJob& job, const SegmentTools& tools,
                  std::function<void(Segment)> done);

/// Whether the segment is large enough to be a layer of its own; all others share one.
bool has_own_layer(const Segment& segment);
/// One layer of these segments, in their order.
Layer make_bytecode_layer(const std::vector<const Segment*>& segments, std::string title,
                          std::int64_t epoch, Store& store, bool unpack);

}  // namespace mlenv
