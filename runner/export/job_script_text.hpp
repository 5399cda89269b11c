#pragma once
// Pieces of bash that scripts of jobs are made of. For runner/export/job_script*.cpp only.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/export/job_script.hpp"

namespace mlenv::job {

/// A word of bash_array(), as it stands there.
struct BashWord {
  std::string written;
  bool option = false;  ///< it begins with `-`

  /// Bash gives back this text, whatever is in it.
  static BashWord quoted(const std::string& text);
  /// What bash is to look into: it has quotes of its own, and nobody else's text in it.
  static BashWord code(std::string text) { return {std::move(text), false}; }
};
/// `NAME=(a 'b c' …)`, in lines of a readable width.
std::string bash_array(std::string_view name, const std::vector<BashWord>& words);
/// The same of words that are all quoted.
std::string bash_array(std::string_view name, const std::vector<std::string>& words);
/// With the first `mark`, if there is one, replaced.
std::string replaced_once(std::string text, std::string_view mark, std::string_view by);
/// A line that divides parts of a script.
std::string bash_heading(std::string_view text);

/// tell(): what a rank is told of the others.
std::string bash_tell(const JobScript& script);
/// describe_node(), and of containers by mlenv-node program(), whole() and take_program().
std::string bash_node(const JobScript& script);
/// start_rank(), and rank_main() around it where launchers call it.
std::string bash_rank(const JobScript& script);
/// Where ranks that serve for ever are ended with those that matter: after the end of rank $1, of
/// $status. `then`: what its shell does when all of those are done.
std::string bash_essential(const JobScript& script, std::string_view then);
/// shipped(): settings and functions as text for a shell elsewhere.
std::string bash_shipped(const JobScript& script);

/// What remains of each form.
std::string bash_by_launcher(const JobScript& script);  ///< Slurm, MPI
std::string bash_by_ssh(const JobScript& script);

}  // namespace mlenv::job
