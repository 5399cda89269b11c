#include "cli/run_matrix_keeper.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "recipes/text.hpp"

namespace mlenv::cli {

using matrix::MatrixRecord;
using matrix::Variation;

MatrixKeeper::MatrixKeeper(Ui& ui, OpenedMatrix& opened)
    : ui_(ui),
      opened_(opened),
      runs_(runs_folder(ui.store().root())),
      show_(std::in_place, ui.progress(), opened.record, runs_folder(ui.store().root())) {
  write();
}

void MatrixKeeper::watch(matrix::DriveEvents& events) {
  events.began = [this](std::size_t index) { began(index); };
  events.recorded = [this](std::size_t index, const std::string& run) { recorded(index, run); };
  events.ended = [this](const matrix::Ended& one) { ended(one); };
  events.stopping = [this](int, bool again) { stopping(again); };
  events.tick = [this] { tick(); };
}

void MatrixKeeper::began(std::size_t index) {
  Variation& one = opened_.record.variations[index];
  one = {one.number, one.values, one.folder, "running", {}, {}, {}, {}};
  show_->began(index);
  dirty_ = true;
}

void MatrixKeeper::recorded(std::size_t index, const std::string& run) {
  opened_.record.variations[index].run = run;
  dirty_ = true;
}

void MatrixKeeper::ended(const matrix::Ended& ended) {
  Variation& one = opened_.record.variations[ended.variation];
  if (!ended.run.empty()) take_record(ended.run, one);
  if (ended.failure) {
    one.state = "refused";
    if (!ended.ends_all)
      show_->note(fmt::format("{}: {}", matrix::shown_values(one), ended.failure->what()));
  } else if (ended.run.empty()) {
    one.state = "lost";
  }
  if (ended.stopped && one.state != "refused") one.state = "stopped";
  take_metrics(one);
  show_->ended(ended.variation);
  dirty_ = true;
  if (ended.stopped) write();  // its record may say that it is done
}

void MatrixKeeper::given_up(std::size_t index) {
  opened_.record.variations[index].state = "waiting";
  dirty_ = true;
}

void MatrixKeeper::put_back(std::size_t index, const std::string& why) {
  given_up(index);
  show_->put_back(index, why);
}

void MatrixKeeper::stopping(bool again) {
  show_->note(again ? "interrupted again: what still runs is killed"
                    : "interrupted: what runs was told, and no more is started; once more kills");
}

void MatrixKeeper::note(std::size_t index, const std::string& sentence) {
  const Variation& one = opened_.record.variations[index];
  show_->note(fmt::format("{}: {}", matrix::shown_values(one), printable(sentence)));
}

void MatrixKeeper::tick() {
  using std::chrono::steady_clock;
  constexpr std::chrono::seconds kPause{1};
  show_->refresh();
  if (dirty_ && steady_clock::now() - written_ >= kPause) write();
}

void MatrixKeeper::finish(int signal, const std::optional<Error>& refused) {
  MatrixRecord& all = opened_.record;
  const std::size_t open = not_done(all).size();
  const bool stopped = count_in(all, "stopped") + count_in(all, "waiting") > 0;
  all.state = open == 0 ? "done" : signal != 0 || stopped ? "stopped" : "failed";
  if (refused) show_->note(refused->what());
  write();
  show_.reset();
}

void MatrixKeeper::take_record(const std::string& id, Variation& one) {
  one.run = id;
  try {
    const RunRecord run = runs_.read_brief(id);
    one.state = matrix::state_by(run);
    if (!run.end) return;
    one.exit_code = run.end->exit_code;
    one.seconds = run.end->seconds;
  } catch (const Error& error) {
    one.state = "lost";
    show_->note(error.what());
  }
}

void MatrixKeeper::take_metrics(Variation& one) {
  try {
    one.metrics = matrix::read_metrics(opened_.folder.fd(), one.folder,
                                       fs::path(opened_.record.results) / one.folder);
  } catch (const Error& error) {
    show_->note(fmt::format("{}: {}", matrix::shown_values(one), error.what()));
  }
}

/// A full disk ends no run: it is told of once.
void MatrixKeeper::write() {
  dirty_ = false;
  written_ = std::chrono::steady_clock::now();
  try {
    opened_.folder.write(opened_.record);
  } catch (const Error& error) {
    if (!std::exchange(told_, true)) {
      ui_.say(fmt::format("how far the matrix got is not written down: {}", error.what()));
    }
  }
}

bool nothing_ran(const MatrixRecord& record) {
  return count_in(record, "waiting") + count_in(record, "refused") == record.variations.size();
}

int answer_matrix(const Ui& ui, const MatrixRecord& record, int signal) {
  const std::size_t open = not_done(record).size();
  if (ui.options.json) {
    ui.answer(render_matrix(record));
  } else {
    for (const std::string& line : matrix_table(record)) ui.answer(line);
  }
  if (open > 0 && !ui.options.json) {
    ui.say(fmt::format("{} of {} not done; the same command with `--resume` goes on with {}", open,
                       counted(record.variations.size(), "variation"), open == 1 ? "it" : "them"));
  }
  if (signal != 0) return kSignalBase + signal;
  return open == 0 ? 0 : 1;
}

}  // namespace mlenv::cli
