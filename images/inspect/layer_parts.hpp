#pragma once
// Gathers what a layer holds, in bounded memory. For layer_facts*.cpp alone.
#include <map>
#include <string>

#include "images/inspect/layer_facts.hpp"

namespace mlenv {

inline constexpr std::uint64_t kLargestText = std::uint64_t{4} << 20U;

/// Texts that facts are made of: `etc/passwd`, the dynamic linker's cache, what frameworks say of
/// their build.
bool is_wanted_text(std::string_view path, std::uint64_t bytes);

/// Whether a file is no program and no library, by its name: most files of an image need not be
/// opened.
bool is_never_elf(std::string_view path);

class LayerParts {
 public:
  void add(LayerEntry entry);
  void add_elf(const std::string& path, ElfFile elf);
  void add_text(const std::string& path, std::string text);
  /// What was added for the path: a later entry of a tar takes its place.
  void forget(const std::string& path);
  /// Hard links stand for the first of their names, which has the bytes.
  LayerFacts finish();

 private:
  void spend(std::size_t bytes);
  void name_firsts();
  std::uint64_t left_ = std::uint64_t{512} << 20U;
  std::map<std::string, LayerEntry> entries_;
  std::map<std::string, LayerEntry> marks_;
  std::map<std::string, ElfFile> elves_;
  std::map<std::string, std::string> texts_;
};

}  // namespace mlenv
