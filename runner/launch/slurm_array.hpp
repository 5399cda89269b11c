#pragma once
// A job array of Slurm's: many jobs of one batch script, each told apart by its number.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/launch/slurm_job.hpp"

namespace mlenv::job {

/// What `--array=` takes: `2,5-7`, and with `at_once` `2,5-7%3`. The numbers ascend.
std::string array_words(const std::vector<std::uint64_t>& numbers,
                        std::optional<std::uint64_t> at_once);

/// Slurm's id of one task, as its programs take it: `123_7`. That of the last task to begin is also
/// the array's, so that a bare number may mean all of them.
std::string array_task(std::string_view array, std::uint64_t number);

/// Tasks that Slurm's queue still has, by number: those that wait or run. What is not there is
/// over.
using ArrayQueue = std::map<std::uint64_t, SlurmState>;

/// What `squeue --noheader --array --format=%K|%T|%r|%N` prints.
ArrayQueue parse_array_queue(std::string_view text);
/// Nullopt where no daemon answers just now; empty where all is over, even so long ago that Slurm
/// has forgotten it. Throws `no-slurm` where there is no squeue.
std::optional<ArrayQueue> ask_slurm_array(const std::string& array);

}  // namespace mlenv::job
