#pragma once
// The tree of a source archive, laid out entry by entry: files and folders alone, and nothing
// outside of its folder. Links within the archive become copies of what they lead to.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv {

Error bad_source(const std::string& file, std::string why);

/// Paths are those in the archive, relative and without `..`; all below one folder, which is left
/// out of what is written. What packers put beside that folder (`pax_global_header`, `._name`) is
/// passed over. All throw `bad-source`, and `too-large` for more than an archive may hold.
class SourceLayout {
 public:
  using Write = std::function<void(Sink&)>;

  /// Makes `folder`; `file` names the archive in messages.
  SourceLayout(fs::path folder, std::string file);

  void add_folder(const std::string& path);
  /// Mode 0755 or 0644; a later file of that path is the one that stays.
  void add_file(const std::string& path, bool executable, const Write& write);
  /// `target` as a symbolic link has it.
  void add_link(const std::string& path, const std::string& target);
  /// `target` is the path of a file that is there already.
  void add_hard_link(const std::string& path, const std::string& target);
  /// Copies what links lead to. One that leads to nothing is left out; one that leads out of the
  /// archive, or in a circle, is refused.
  void finish();

 private:
  bool is_beside(const std::string& path);
  fs::path place(const std::string& path);
  fs::path free_place(const std::string& path);
  std::string follow(const std::string& link) const;
  bool waits_in(const std::string& folder) const;
  bool copy_target(const std::string& link);
  void copy_file(const fs::path& from, const fs::path& to);
  void copy_folder(const fs::path& from, const fs::path& to);
  void count_entry();
  void count_bytes(std::uint64_t more);
  Error refused(std::string why) const { return bad_source(file_, std::move(why)); }

  fs::path folder_;
  std::string file_;
  std::string top_;
  std::map<std::string, std::string> links_;    ///< all of them
  std::map<std::string, std::string> waiting_;  ///< those not laid out yet, and where they lead
  std::uint64_t bytes_ = 0;
  std::uint64_t entries_ = 0;
};

}  // namespace mlenv
