#pragma once
// What mlenv and the keeper of a container say to each other over a stream socket. Both are of one
// build, so numbers are as this machine has them; texts end in NUL.
//
// A frame is a head and `bytes` more; open files come with the head (unix(7), SCM_RIGHTS).
#include <cstdint>

namespace mlenv::keeper {

/// What the keeper's process is called (proc_pid_comm(5)).
inline constexpr const char* kProcessName = "mlenv-keeper";

/// Its first argument where it is no keeper but the first program of a container that an OCI
/// runtime makes (enter.hpp), and the third: whether an absent folder is made.
inline constexpr const char* kEnter = "enter";
inline constexpr const char* kMake = "make";
inline constexpr const char* kNeed = "need";
/// Where that program tells what went wrong.
inline constexpr int kReportFd = 3;

enum class Word : std::uint32_t {
  // of mlenv
  file,     ///< FileHead, path, content: a new file in the place of whatever is there
  folder,   ///< FolderHead, path: with those above it
  link,     ///< path, where it leads: in the place of whatever is there
  mode,     ///< FileHead, path: of what is there
  start,    ///< StartHead, groups, folder, words, variables; three files, or none with a terminal
  signal,   ///< a number: to the process that was started
  channel,  ///< one file: a socket on which the same may be said of a further process
  reset,    ///< paths: ends all processes; what lies in these folders in memory goes, and IPC
  // of the keeper
  hello,    ///< one file: the container's root
  done,     ///< of file, folder, link, mode and reset
  failed,   ///< Failed
  started,  ///< one file with a terminal: its master
  ended,    ///< Ended
};

struct Head {
  std::uint32_t bytes = 0;
  Word kind = Word::done;
};
inline constexpr std::uint32_t kMostBytes = std::uint32_t{16} << 20U;
inline constexpr std::uint32_t kMostFiles = 3;

struct FileHead {
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

struct FolderHead {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t give = 0;  ///< 1: to that owner even where it was there
};

struct StartHead {
  static constexpr std::uint32_t kTerminal = 1;
  static constexpr std::uint32_t kSetGroups = 2;    ///< else they stay what the engine gave
  static constexpr std::uint32_t kMakeFolder = 4;   ///< where it is absent
  static constexpr std::uint32_t kGiveStreams = 8;  ///< pipes and sockets, to the user
  std::uint32_t flags = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t umask = 0;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t groups = 0;
  std::uint32_t words = 0;
  std::uint32_t variables = 0;
};

struct Failed {
  enum class Step : std::uint32_t { files, folder, user, program, process, filter };
  std::int32_t error = 0;
  Step step = Step::files;
};

struct Ended {
  std::int32_t status = 0;  ///< of wait(2)
  std::uint32_t unused = 0;
  // Of all that has ended in the container so far (getrusage(2)).
  std::uint64_t user_microseconds = 0;
  std::uint64_t system_microseconds = 0;
  std::uint64_t read_blocks = 0;
  std::uint64_t written_blocks = 0;
  std::uint64_t largest_kilobytes = 0;
};

}  // namespace mlenv::keeper
