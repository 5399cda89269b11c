#pragma once
// Lists that a build makes of others before something installs them: `grep -v torch a.txt > b.txt`,
// `sed -i /torch/d a.txt`, `echo numpy >> a.txt`.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/init/listed_words.hpp"
#include "recipes/init/shell_words.hpp"

namespace mlenv {

struct MadeList {
  std::string path;  ///< in the image
  fs::path source;   ///< the file here that it was made of; empty: none
  std::string text;
  std::string command;  ///< as written
  SourcePlace place;
  bool used = false;
};

class MadeLists {
 public:
  /// What a command is started with.
  struct Place {
    SourcePlace source;
    const std::string& folder;  ///< in the image
    const DockerVariables& known;
    const FindFile& file;
    const Conversion& to;
    std::string_view script;  ///< all commands, which tell what is installed
    std::string_view build;   ///< the whole file that they stand in
  };

  /// Follows a command that makes, moves or removes such a list. False: it does none of that, or
  /// what it leaves is not known.
  bool take(const ShellCommand& one, const Place& place);
  /// What a pipe writes (`grep -v x a.txt | sort`), as a list that later commands read by the name
  /// that it gets; nullopt: that is not known.
  std::optional<PipedList> pipe(std::string_view commands, const Place& place);
  /// The list of that name, which is read now; null: a build makes none.
  const MadeList* read(std::string_view name, const std::string& folder);
  /// At the end: what nothing installs.
  void tell_unused(Conversion& to) const;

 private:
  static std::optional<MadeList> made_by(std::string_view commands, const Place& place,
                                         MadeLists& lists);
  MadeList* find(const std::string& path);
  bool writes(const ShellCommand& one, const Place& place);
  bool edits(const std::vector<std::string>& words, const ShellCommand& one, const Place& place);
  bool moves(const std::vector<std::string>& words, const Place& place);
  bool removes(const std::vector<std::string>& words, const Place& place);
  void put(MadeList list);

  std::vector<MadeList> all_;
};

}  // namespace mlenv
