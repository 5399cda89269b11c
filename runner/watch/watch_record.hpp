#pragma once
// What was seen of a run, as JSON (schema mlenv.watch/1), and beside the run's record, so that the
// answer can be had after its end.
#include "runner/record/run_record.hpp"
#include "runner/watch/answer.hpp"

namespace mlenv::watch {

/// Objects of the schema, on one line; `kind`, `run` and the like are the caller's to add.
std::string render_sample(const Sample& sample);
std::string render_answer(const Answer& answer);

/// In the record's folder, in the place of an earlier one. A folder that cannot be written, or is
/// gone, changes nothing: the answer has been given.
void keep_answer(const fs::path& run_folder, const Answer& answer);
/// Of a run that has ended: what was kept, else what its totals tell.
Answer answer_of_ended(const fs::path& run_folder, const RunRecord& record);

}  // namespace mlenv::watch
