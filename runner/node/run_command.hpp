#pragma once
// What `mlenv export` has scripts do with mlenv-node, where no controller is: an image into the
// node's store, and a command in it.
//
//   mlenv-node prepare [--store DIR] oci:DIR@DIGEST code:FILE@DIGEST
//                                                         an image, which is unpacked, an archive
//                                                         of code: into the store
//   mlenv-node lacks [--store DIR] DIGEST…                blobs that the store has not
//   mlenv-node run [OPTION…] DIGEST [-- COMMAND…]         a container of a prepared image
//
// Options of `run` are those of `mlenv run`, as far as ranks have them, and
//   --code DIGEST      an archive of code in the store: unpacked for this container, its project
//   --add-host N:A     a name of /etc/hosts
//   --deterministic N  as that of `mlenv run`, with the seed N
//   --while-open       it ends as soon as standard input ends: with whoever holds the other end
//   --env-fd N         more variables from that descriptor: `K=V`, each with a NUL behind it. In
//                      arguments everybody on the machine could read them
//   --silence SECONDS  and when nothing came from there for so long: whoever says this sends lines
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "runner/local/run.hpp"

namespace mlenv::job {

/// `run`, understood.
struct NodeRunWords {
  fs::path store;                     ///< empty: default_node_store()
  std::string digest;                 ///< of the image's manifest
  std::optional<int> env_fd;          ///< more variables are read from there
  std::string code;                   ///< digest of its archive; empty: none
  std::string gpus;                   ///< as RankStart has it
  std::string hosts;                  ///< lines of /etc/hosts
  std::optional<std::uint64_t> seed;  ///< of --deterministic
  bool while_open = false;
  std::optional<std::chrono::seconds> silence;  ///< with while_open: no longer without a word
  LocalRun run;                                 ///< without image, devices and project
};
/// Throws `usage` and what the words' own parsers throw.
NodeRunWords parse_node_run(const std::vector<std::string>& words);

/// The options of ranks as words for parse_node_run(), in the order of `JobOptions`.
std::vector<std::string> option_words(const JobOptions& options);

/// nullopt: it is none of the three. The command's status as `mlenv run` has it; what goes wrong
/// before is thrown.
std::optional<int> script_command(const std::vector<std::string>& words);

}  // namespace mlenv::job
