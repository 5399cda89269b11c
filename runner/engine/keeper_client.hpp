#pragma once
// mlenv's side of a container's keeper (keeper/main.cpp).
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "runner/engine/keeper/protocol.hpp"
#include "runner/local/bundle.hpp"
#include "runner/local/image_root.hpp"
#include "runner/local/life.hpp"

namespace mlenv {

/// The program itself, which is part of mlenv.
std::string_view keeper_program();

/// What the keeper counted, in the units of a run.
JobUsage usage_of(const keeper::Ended& use);

/// One process within a container, and what is asked for on its behalf.
struct KeptProcess {
  ContainerUser user;
  bool set_groups = true;  ///< else they stay what the engine gave
  std::string workdir;
  bool make_workdir = false;
  std::vector<std::string> argv;
  std::vector<std::string> env;
  bool terminal = false;
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
  std::vector<int> streams;  ///< three; none with a terminal
};

class Keeper {
 public:
  struct Started {
    Fd master;  ///< with a terminal; whatever else is sent in its place is closed
  };
  struct End {
    Exit exit;
    keeper::Ended use;
  };

  /// The code of the Error that tells that it is gone.
  static constexpr std::string_view kGone = "run-failed";

  Keeper() = default;
  explicit Keeper(Fd connection) : connection_(std::move(connection)) {}
  explicit operator bool() const { return static_cast<bool>(connection_); }
  int fd() const { return connection_.get(); }
  void close() { connection_.reset(); }
  /// Asked before each answer is waited for: false, and the keeper counts as gone. It counts as
  /// gone likewise when no answer comes within a minute, or not all of it: whoever is root in a
  /// container can stop its keeper, or speak in its place. Not for a `channel`.
  void before_waiting(std::function<bool()> may_wait) { may_wait_ = std::move(may_wait); }

  /// Its process, as this one's PID namespace numbers it; nullopt where that does not show it.
  std::optional<pid_t> process() const;

  /// The container's root, which it says first. Throws `run-failed` where it does not.
  Fd hello();
  /// Throws `image-root`.
  void write(const std::string& path, std::string_view text, const keeper::FileHead& head);
  void make_folder(const std::string& path, const keeper::FolderHead& head);
  void make_link(const std::string& path, const std::string& leads_to);
  void set_mode(const std::string& path, std::uint32_t mode);
  /// nullopt for what is refused: `problem` is filled. Throws `run-failed` when it is gone.
  std::optional<Started> start(const KeptProcess& process, keeper::Failed& problem);
  void signal(int number) const;
  /// A socket on which one more process may be asked for.
  Keeper channel() const;
  /// All processes end; folders in memory are emptied. False: the container is gone.
  bool reset(const std::vector<std::string>& folders);
  /// Waits for it. nullopt: the container is gone.
  std::optional<End> ended();

 private:
  struct Frame;
  bool send(keeper::Word kind, std::string_view bytes, const std::vector<int>& files = {}) const;
  Frame receive();
  void require_done(const std::string& what);
  Fd connection_;
  std::function<bool()> may_wait_;
};

}  // namespace mlenv
