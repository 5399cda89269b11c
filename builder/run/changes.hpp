#pragma once
// What overlayfs's upper folder says is different from the trees below it.
#include <map>
#include <optional>
#include <set>
#include <string>

#include "builder/run/change_layer.hpp"

namespace mlenv {

/// One path that the layer speaks of.
struct Change {
  fs::path source;  ///< on the host; empty: the path is removed
  struct stat status {};
  bool opaque = false;  ///< a folder of which lower layers show nothing
  bool removed() const { return source.empty(); }
};

class ChangeFinder {
 public:
  explicit ChangeFinder(const Changes& all) : all_(all) {}
  /// By path, relative to the root, without those of the folders on the way that are as before.
  std::map<std::string, Change> find();

 private:
  void walk();
  /// `hidden`: lower layers show nothing here.
  void meet(const std::string& path, const Change& now, bool hidden);
  /// Whether they show nothing in it.
  bool meet_folder(const std::string& path, const Change& now, bool hidden);
  bool is_same(const std::string& path, const Change& now, const LayerStack::Found& before) const;
  bool other_owner(const std::string& absolute) const;
  void add_changed_owners();
  bool is_gone(const std::string& path) const;
  void add_parents();

  const Changes& all_;
  std::map<std::string, Change> found_;
  std::set<std::string> seen_;     // in the upper folder, whatever it is
  std::set<std::string> folders_;  // of those, folders that show what is below them
};

}  // namespace mlenv
