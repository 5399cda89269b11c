#pragma once
// A tree on top of the image's that lasts for one step: what a program must find but the image
// does not keep.
#include <functional>
#include <string>
#include <vector>

#include "base/overlay.hpp"
#include "builder/run/image_owners.hpp"
#include "builder/run/layer_stack.hpp"

namespace mlenv {

class LentTree {
 public:
  /// Made in `folder`, which is absent.
  LentTree(fs::path folder, LayerStack& below);
  const fs::path& folder() const { return folder_; }
  /// Absolute paths of what is no part of the image's changes.
  const std::vector<std::string>& lent() const { return lent_; }

  /// The same entry as below, but the caller's own: in a user namespace of one id other owners'
  /// files cannot be changed. Of a folder its attributes alone.
  void disown(const std::string& path);
  /// The same of a folder and all that is in it, and nothing else is seen there: for one that
  /// cannot even be listed. Before any `disown`.
  void disown_whole(const std::string& path);
  /// Disowns all that is not 0:0's, as root, for whom alone the trees have other owners. First of
  /// all.
  void disown_others(const ImageOwners& owners);
  /// A folder where the image has none.
  void add_folder(const std::string& path);
  /// A file that is lent, unless the image has one.
  void offer(const std::string& path, std::string_view text);
  /// Lends what `write` puts into a folder that shows the image's package settings.
  void lend(const fs::path& view, const std::function<void(const fs::path&)>& write);
  /// Gives folders the modes that they have below. Last.
  void finish();
  /// This tree on all layers, writable in `scratch`/overlay, which is made.
  Overlay stacked(const fs::path& scratch) const;

 private:
  void copy_into(const fs::path& root, const std::string& path, const LayerStack::Found& found);
  void copy_whole(const std::string& path);
  bool is_whole(const std::string& path) const;
  std::vector<std::string> settings_in_sight();
  fs::path folder_;
  LayerStack& below_;
  std::vector<std::string> lent_;
  std::vector<std::string> whole_;  // folders of which nothing below is seen
};

}  // namespace mlenv
