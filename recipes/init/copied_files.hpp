#pragma once
// COPY and ADD of a Dockerfile as `files` of a recipe.
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipes/init/conversion.hpp"
#include "recipes/init/dockerfile.hpp"

namespace mlenv {

class CopiedFiles {
 public:
  /// `context`: the folder that sources are relative to; the Dockerfile's own.
  CopiedFiles(const fs::path& context, Conversion& to);
  /// Of a stage that is not in the image: it is known where its files come from, and nothing more.
  void only_find() { only_find_ = true; }

  void copy(const SourcePlace& place, const DockerInstruction& instruction,
            const DockerVariables& known, const std::string& workdir);
  /// `COPY --from=STAGE source target`: what of this folder lies in that stage below `source`.
  /// False where nothing does.
  bool copy_from(const SourcePlace& place, const CopiedFiles& stage, const std::string& source,
                 const std::string& target, const std::string& workdir);
  /// The file here that `name` means in the image: a copied one, or one beside the Dockerfile;
  /// nullopt where there is none.
  std::optional<fs::path> find(std::string_view name, const std::string& workdir) const;
  /// The names in the image of copied files that a pattern means, sorted; relative ones for such a
  /// pattern.
  std::vector<std::string> matching(std::string_view pattern, const std::string& workdir) const;
  /// What another Dockerfile copied into the image that this one begins with.
  void inherit(const CopiedFiles& base);
  /// A folder here that lies in the image, by another way than COPY.
  void add(const std::string& target, const fs::path& here) { copied_.emplace_back(target, here); }
  /// At the end: files for places that `files` cannot name, unless a command read them.
  void tell_unplaced();

 private:
  struct Unplaced {
    SourcePlace place;
    std::string text;
    std::string why;
    fs::path here;
  };

  bool flags(const SourcePlace& place, const DockerInstruction& instruction);
  void download(const SourcePlace& place, const std::string& source, const std::string& target,
                const std::string& workdir, const std::string& text);
  void pattern(const SourcePlace& place, const std::string& source, const std::string& where,
               bool into, const std::string& text);
  void forget_covered(const std::string& folder, const std::string& target);
  void one(const SourcePlace& place, const std::string& source, const std::string& target,
           bool into);

  fs::path context_;
  std::string prefix_;  ///< of sources, in the recipe's folder: `docker/`
  bool only_find_ = false;
  bool reachable_ = false;  ///< whether `files` of the recipe can name them at all
  Conversion* to_;
  std::vector<std::pair<std::string, fs::path>> copied_;  ///< path in the image, path here
  std::vector<Unplaced> unplaced_;
  mutable std::set<fs::path> read_;  ///< sources of copies that a command asked for
};

}  // namespace mlenv
