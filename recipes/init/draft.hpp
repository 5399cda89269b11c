#pragma once
// A recipe that is about to be written: what `mlenv init` knows, and what it found elsewhere and no
// recipe can say.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv {

/// A place of a file that a draft is made from.
struct SourcePlace {
  std::string file;  ///< as the person would name it
  int line = 0;      ///< 1-based; 0: the whole file
};

/// Something written there that the recipe does not say.
struct LeftOut {
  SourcePlace place;
  std::string text;  ///< as written, in one line, without logins
  std::string why;
};

/// A step of `run`.
struct DraftStep {
  std::string command;  ///< may have several lines
  bool network = false;
  std::vector<std::string> secrets;
};

/// An item of `requirements`.
struct DraftRequirements {
  std::string file;  ///< relative to the recipe's folder
  std::vector<std::string> extras{};
  std::vector<std::string> groups{};
  friend bool operator==(const DraftRequirements&, const DraftRequirements&) = default;
};

/// Where one package comes from, and nothing else: an item of `index`.
struct DraftIndex {
  std::string package;  ///< normalised
  std::string url;
  bool find_links = false;  ///< a page of files
  friend bool operator==(const DraftIndex&, const DraftIndex&) = default;
};

/// An item of `dependency-metadata`.
struct DraftMetadata {
  std::string name;  ///< normalised
  std::string version;
  std::string requires_python;
  std::vector<std::string> requires_dist;
  std::vector<std::string> extras;
  friend bool operator==(const DraftMetadata&, const DraftMetadata&) = default;
};

/// One key of `build: {config-settings: …}`.
struct DraftConfigSetting {
  std::string package;  ///< normalised; empty: of all
  std::string key;
  std::vector<std::string> values;
  friend bool operator==(const DraftConfigSetting&, const DraftConfigSetting&) = default;
};

/// How packages are chosen and built: keys of the recipe in uv's and pip's words
/// (recipes/steering.hpp has what they mean).
struct DraftChoice {
  template <class Value>
  using ByPackage = std::vector<std::pair<std::string, Value>>;  ///< by normalised names

  std::vector<std::string> constraints;
  std::vector<std::string> overrides;
  std::vector<std::string> exclude;
  std::vector<std::string> no_binary;
  std::vector<std::string> only_binary;
  std::string prerelease;
  std::string exclude_newer;  ///< a day, or a moment in UTC
  std::vector<DraftMetadata> metadata;
  std::vector<DraftConfigSetting> config_settings;
  std::vector<std::string> build_constraints;
  ByPackage<std::vector<std::string>> build_requires;
  ByPackage<std::vector<std::pair<std::string, std::string>>> build_env;
};

/// Empty texts and lists: the recipe says nothing of it. All texts fit the recipe's grammar.
struct Draft {
  std::string name;
  std::string base;       ///< `debian:bookworm`, or an image with its registry
  std::string python;     ///< `3.11`
  std::string framework;  ///< a requirement
  std::string cuda;       ///< `13`, `12.6`, `cpu`
  bool nvcc = false;      ///< `libraries: {nvcc: true}`
  std::vector<std::string> packages;
  std::vector<DraftRequirements> requirements;
  std::vector<std::string> constraints;  ///< files of the recipe's folder
  std::vector<std::string> system;
  std::vector<std::pair<std::string, std::string>> env;  ///< in the source's order, each name once
  std::string workdir;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> files;  ///< each source once
  std::vector<DraftStep> run;
  std::vector<DraftIndex> index;
  DraftChoice choice;
  std::vector<std::string> indexes;  ///< of Python, the default one first

  bool wants_python = false;  ///< it is made of a Python project, whatever that needs
  std::string source;         ///< what it was converted from; empty: nothing
  std::string base_note;      ///< sentences for comments above the keys
  std::string cuda_note;
  std::vector<LeftOut> left_out;
  std::vector<LeftOut> notes;  ///< carried over, in a way that a person is to look at
};

/// `Dockerfile:12: RUN make: why`; of a note the same.
std::string sentence(const LeftOut& left_out);

/// The recipe's text. Reads back (`parse_recipe`) as what the draft says; what was left out stands
/// at its end as comments. `file` is what the recipe will be called, for the example above it.
std::string render_draft(const Draft& draft, std::string_view file);

/// One line of clean text: control characters and line ends become blanks, logins in URLs are taken
/// out, what is longer than a screen's line or two is cut.
std::string shown_text(std::string_view text);
/// The same of a sentence about it, which may be longer.
std::string shown_sentence(std::string_view text);

}  // namespace mlenv
