#pragma once
// What one layer holds, as far as facts of images are made of it: every path, what ELF files say,
// and a few small texts. Known once for a layer, whatever images it is part of.
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "images/inspect/elf.hpp"
#include "images/store.hpp"

namespace mlenv {

struct LayerEntry {
  /// `file`, `folder`, `link` (symbolic), `same` (hard link), `other`; marks for lower layers:
  /// `gone` (a whiteout), `opaque` (a folder of which they show nothing)
  std::string kind;
  std::string path;  ///< relative
  std::string link;  ///< where it leads: of a link verbatim, of a hard link a path of this layer
  std::uint64_t bytes = 0;
  friend bool operator==(const LayerEntry&, const LayerEntry&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("k", self.kind);
    visit("p", self.path);
    visit("l", self.link);
    visit("b", self.bytes);
  }
};

/// An ELF file or a text, by its path. The text of a Python module is what it loads
/// (python_loads.hpp).
struct LayerElf {
  std::string path;
  ElfFile elf;
  friend bool operator==(const LayerElf&, const LayerElf&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("elf", self.elf);
  }
};
struct LayerText {
  std::string path;
  std::string text;
  friend bool operator==(const LayerText&, const LayerText&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("text", self.text);
  }
};

/// Sorted by path; the last entry of a path where a tar has several.
struct LayerFacts {
  std::vector<LayerEntry> entries;
  std::vector<LayerElf> elves;
  std::vector<LayerText> texts;
  friend bool operator==(const LayerFacts&, const LayerFacts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("entries", self.entries);
    visit("elves", self.elves);
    visit("texts", self.texts);
  }
};

/// Of a layer that lies in the store: from its unpacked tree, else from its blob as it streams by,
/// verified; in at most 64 MiB of memory beside the result. Throws what reading a layer throws, and
/// `too-large` where the result itself would be (an image may be anybody's).
LayerFacts read_layer_facts(const Store& store, const Layer& layer, Progress& progress);

/// The same, remembered in the store by the layer's diff-id.
LayerFacts layer_facts(Store& store, const Layer& layer, Progress& progress);

/// Compact, for the store; nullopt for what another version wrote.
std::string pack_layer_facts(const LayerFacts& facts);
std::optional<LayerFacts> unpack_layer_facts(std::string_view packed);

}  // namespace mlenv
