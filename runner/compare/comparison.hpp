#pragma once
// What a comparison found: mlenv.compare/1, described in docs/compare.md. Plain values; figures are
// kept as they were measured, and what is said of them (`summary`, `relation`, `drift`) is worked
// out again whenever samples are added (conclude).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/compare/statistics.hpp"

namespace mlenv::compare {

struct Sample {
  double value = 0;
  std::uint64_t session = 0;  ///< in which of Comparison::sessions it was taken, from 0
  friend bool operator==(const Sample&, const Sample&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("value", self.value);
    visit("session", self.session);
  }
};

/// The session before found another median, and the intervals do not touch.
struct Drift {
  double median_before = 0;
  double median_now = 0;
  friend bool operator==(const Drift&, const Drift&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("median_before", self.median_before);
    visit("median_now", self.median_now);
  }
};

/// One row on one side. Without samples and text it was not measured, and `why` says why.
struct Cell {
  std::string side;
  std::vector<Sample> samples;
  std::optional<std::string> text;  ///< of what is no number
  std::optional<std::string> why;
  std::optional<std::string> note;            ///< beside the figure: `computed`, another address
  std::optional<std::string> device;          ///< that it ran on: `cpu`, `cuda`; nullopt: not asked
  std::optional<std::uint64_t> text_session;  ///< in which of Comparison::sessions `text` was found
  std::optional<Summary> summary;             ///< of the newest session's samples
  std::optional<std::string> relation;        ///< to base_of it
  std::optional<double> ratio;  ///< of medians; only where `relation` claims something
  std::optional<Drift> drift;
  friend bool operator==(const Cell&, const Cell&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("side", self.side);
    visit("samples", self.samples);
    visit("text", self.text);
    visit("why", self.why);
    visit("note", self.note);
    visit("device", self.device);
    visit("text_session", self.text_session);
    visit("summary", self.summary);
    visit("relation", self.relation);
    visit("ratio", self.ratio);
    visit("drift", self.drift);
  }
};

struct RowResult {
  std::string id;  ///< `start.user`
  std::string title;
  std::string unit;     ///< `s`, `bytes`, `bytes/s`, `events/s`, …; empty: a text
  std::string better;   ///< `lower`, `higher`, `neither`
  std::string meaning;  ///< what it says for the choice
  std::string command;  ///< that measured it
  bool computed = false;
  std::vector<Cell> sides;
  friend bool operator==(const RowResult&, const RowResult&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("title", self.title);
    visit("unit", self.unit);
    visit("better", self.better);
    visit("meaning", self.meaning);
    visit("command", self.command);
    visit("computed", self.computed);
    visit("sides", self.sides);
  }
};

struct SideResult {
  std::string id;                    ///< `bare`, `builtin`, `docker`, `podman`, `vm`
  std::string title;                 ///< `built-in container`
  std::optional<std::string> why;    ///< it is not there
  std::vector<std::string> options;  ///< of `mlenv run`, that this side alone had; no secrets
  std::optional<std::string> options_digest;  ///< of the words with their secrets
  std::optional<double> price_per_hour;
  friend bool operator==(const SideResult&, const SideResult&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("title", self.title);
    visit("why", self.why);
    visit("options", self.options);
    visit("options_digest", self.options_digest);
    visit("price_per_hour", self.price_per_hour);
  }
};

/// How quiet the machine was. Shares of all processors' time.
struct Noise {
  std::optional<double> load_before;  ///< runnable and waiting processes, averaged over a minute
  std::optional<double> busy_before;  ///< in the moment before the first measurement
  std::optional<double> steal;        ///< taken by a hypervisor, over the whole session
  std::optional<std::string> governor;
  std::optional<std::string> turbo;  ///< `on`, `off`
  friend bool operator==(const Noise&, const Noise&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("load_before", self.load_before);
    visit("busy_before", self.busy_before);
    visit("steal", self.steal);
    visit("governor", self.governor);
    visit("turbo", self.turbo);
  }
};

/// What a virtual machine was in one session.
struct Machine {
  std::string side;
  std::string accelerator;                    ///< `kvm`, `tcg` (emulated), `unknown`
  std::optional<std::string> about;           ///< `q35, kvm, kernel 6.1.0`
  std::optional<std::uint64_t> memory_bytes;  ///< that it had
  friend bool operator==(const Machine&, const Machine&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("side", self.side);
    visit("accelerator", self.accelerator);
    visit("about", self.about);
    visit("memory_bytes", self.memory_bytes);
  }
};

/// One time that `mlenv compare` ran.
struct Session {
  std::string started;  ///< UTC
  double seconds = 0;
  double budget_seconds = 0;
  bool quick = false;
  std::string mlenv;    ///< version
  std::string kernel;   ///< the host's
  std::string boot_id;  ///< of the kernel
  Noise noise;
  std::vector<Machine> machines;  ///< of the sides that have a kernel of their own
  friend bool operator==(const Session&, const Session&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("started", self.started);
    visit("seconds", self.seconds);
    visit("budget_seconds", self.budget_seconds);
    visit("quick", self.quick);
    visit("mlenv", self.mlenv);
    visit("kernel", self.kernel);
    visit("boot_id", self.boot_id);
    visit("noise", self.noise);
    visit("machines", self.machines);
  }
};

struct ComparedHost {
  std::string name;
  std::string kernel;
  std::string cpu;
  std::uint64_t processors = 0;  ///< that this process may use
  std::uint64_t memory_bytes = 0;
  friend bool operator==(const ComparedHost&, const ComparedHost&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("kernel", self.kernel);
    visit("cpu", self.cpu);
    visit("processors", self.processors);
    visit("memory_bytes", self.memory_bytes);
  }
};

/// What all sides were given, and what figures must share to be compared.
struct Terms {
  std::string image_name;
  std::string image;                          ///< digest
  std::optional<std::string> tools;           ///< digest of the image with sysbench and its kin
  std::vector<std::string> command;           ///< the person's own, without secrets; empty: none
  std::optional<std::string> command_digest;  ///< of its words with their secrets
  std::optional<std::string> folder;          ///< that the command is started in
  std::optional<std::string> previous;        ///< digest of what `--previous` named
  std::uint64_t processors = 0;
  std::optional<std::string> memory;  ///< word of `--memory`
  friend bool operator==(const Terms&, const Terms&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("image_name", self.image_name);
    visit("image", self.image);
    visit("tools", self.tools);
    visit("command", self.command);
    visit("command_digest", self.command_digest);
    visit("folder", self.folder);
    visit("previous", self.previous);
    visit("processors", self.processors);
    visit("memory", self.memory);
  }
};

struct Comparison {
  Terms terms;
  ComparedHost host;
  std::vector<SideResult> sides;
  std::vector<Session> sessions;  ///< oldest first
  std::vector<RowResult> rows;
  friend bool operator==(const Comparison&, const Comparison&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("terms", self.terms);
    visit("host", self.host);
    visit("sides", self.sides);
    visit("sessions", self.sessions);
    visit("rows", self.rows);
  }
};

const SideResult* find_side(const Comparison& in, std::string_view id);
const Cell* find_cell(const RowResult& row, std::string_view side);
RowResult* find_row(Comparison& in, std::string_view id);
const RowResult* find_row(const Comparison& in, std::string_view id);
Better better_of(const RowResult& row);

/// Session of the cell's newest samples; nullopt: it has none.
std::optional<std::uint64_t> newest_session(const Cell& cell);
/// What a figure of the row is held against: that of the first side which was measured in the same
/// session; nullptr: it is the first one itself, or has no figure.
const Cell* base_of(const RowResult& row, const Cell& cell);
/// The virtual machine that a cell's figure was found in; nullptr: it is of another side.
const Machine* machine_of(const Comparison& in, const Cell& cell);
/// Those of a side, newest session first.
std::vector<const Machine*> machines_of(const Comparison& in, std::string_view side);

/// Words as a report may show them: without secrets, of `--env=TOKEN=X` neither.
std::vector<std::string> shown_words(const std::vector<std::string>& words);
/// Of the words with their secrets, to tell that two are not the same.
std::string digest_of_words(const std::vector<std::string>& words);

/// Fills in what is said of the samples. Only what was measured in one session, in turn, is held
/// against each other.
void conclude(Comparison& comparison);

/// mlenv.compare/1 on one line, without the newline.
std::string render_comparison(const Comparison& comparison);
/// The other way. Throws `bad-facts` or `facts-version` (usage); `shown` names the text. Samples of
/// sessions that are not there are `bad-facts`, too, and what is larger than any comparison.
Comparison parse_comparison(std::string_view text, std::string_view shown);

}  // namespace mlenv::compare
