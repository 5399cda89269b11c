#pragma once
// What a program changed in a stack of trees, as a layer (docs/layers.md, "Run steps").
#include <map>
#include <string>

#include "base/pool.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/run/layer_stack.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"

namespace mlenv {

struct Changes {
  LayerStack& below;      ///< the image before
  const fs::path& upper;  ///< overlayfs's upper folder after
  const Owners& owners_before;
  const Owners& owners;  ///< at the end, of everything
  const FileCapabilities& capabilities_before;
  const FileCapabilities& capabilities;  ///< set by the program
  std::int64_t epoch = 0;
  /// Paths (absolute) that were lent for the run: what is at or below them is left out.
  const std::vector<std::string>& lent;
  /// Name → content; a file that holds one is refused.
  const std::map<std::string, std::string>& secrets;
};

/// The layer of what is different: new and changed entries with their folders, `.wh.` entries for
/// what is gone. What was written again with the same content, mode and owner is no change. Throws
/// `secret-stored`.
Layer make_change_layer(const Changes& changes, Store& store, Pool& pool, std::string title);

/// Whether containers have their own there: /proc, /sys, /dev, /tmp, /run, /etc/resolv.conf, …
bool is_passing(const std::string& path);

}  // namespace mlenv
