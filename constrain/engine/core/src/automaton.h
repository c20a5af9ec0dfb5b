// The lazily built automaton of one grammar over one vocabulary: lexer, parser, memory, and the masks met so far.
//
// One generation of it. All ids below belong to their generation; when its tables outgrow the limit, a new one starts
// from the grammar and live matchers replay what they have read (matcher.h). Not synchronized: CompiledGrammar locks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar.h"
#include "ids.h"
#include "lexer.h"
#include "limits.h"
#include "memory.h"
#include "parser.h"
#include "storage.h"
#include "vocabulary.h"

namespace constrain {

// Where a text stands: the lexeme under way, the set before it, its text if that is remembered.
struct Place {
  LexId lexer{};
  SetId set{};
  TextId text{};
  bool fresh = true;  // nothing of the lexeme has been read
  TrackId track = TrackId::start;  // what has been read before the lexeme, where that matters
};

// A limit on what it takes to finish: `length`, and `fresh` texts more that differ from some that have been read.
struct Bound {
  uint64_t length = 0;  // in bytes, which tells soon what fits easily, or in tokens
  uint32_t fresh = 0;
  static constexpr uint64_t unknown = uint64_t{1} << 40;
  void add(const Bound& other) {
    length = std::min(unknown, length + other.length);
    fresh += other.fresh;
  }
  void widen(const Bound& other) {
    length = std::max(length, other.length);
    fresh = std::max(fresh, other.fresh);
  }
};

enum class Unit : uint8_t { bytes, tokens };
constexpr size_t units = 2;

// Tokens that may come next, while they are worked out. `by_text` lists those that depend on the text of the lexeme under
// way.
struct MaskDraft {
  std::shared_ptr<const Bitmask> base;
  std::shared_ptr<Bitmask> own;  // the same, unless it is a part's
  std::vector<std::shared_ptr<const Bitmask>> more;
  std::vector<uint32_t> add;
  std::vector<uint32_t> remove;  // from `base`
  std::vector<uint32_t> by_text;
  bool eos = false;
  LimitSet limits;  // that were met: then `by_text` are tokens of one byte, and there are no others

  Bitmask& own_base(size_t words);  // without what is to be removed
};

// The same, as it is kept.
struct MaskTokens {
  std::shared_ptr<const Bitmask> base;
  Array<uint32_t> add, remove, by_text;
  bool eos = false;
  LimitSet limits;
  size_t memory_bytes() const;

  template <typename Archive>
  void visit(Archive& archive) {
    archive(base, add, remove, by_text, eos, limits);
  }
};

// What may come next at one place.
struct Mask {
  std::shared_ptr<const MaskTokens> tokens;
  Array<SetId> sets;  // in which they may end, besides the one it belongs to
  mutable std::array<std::optional<Bound>, units> bounds;  // on finishing after any of them; once asked for
  size_t memory_bytes() const { return sizeof(*this) + sets.own_bytes(); }

  template <typename Archive>
  void visit(Archive& archive) {  // all but the bounds, which are worked out again
    archive(tokens, sets);
  }
};

// What the tokens of a mask were told from, besides the lexer state: the sets that lexemes lead to. Sets are numbered as
// they are met, the mask's own being 0. Where the same lexemes lead to sets that look the same, the tokens are the same.
struct Outline {
  struct Look {  // of a set
    LexId start = LexId::dead;
    bool exists = false, accepting = false, uses_text = false;
    bool operator==(const Look&) const = default;
  };
  struct Lexeme {
    uint32_t from, to;
    MatchId matched;
    TextId text;
    Look look;  // of the set it leads to
  };
  bool uses_text = false;  // the mask's own set
  Array<Lexeme> lexemes;
  Array<uint32_t> ends;  // sets in which tokens may end
  std::shared_ptr<const MaskTokens> tokens;
  uint32_t next = none;  // the next of a list: see outline_key
  static constexpr uint32_t none = ~uint32_t{0};

  template <typename Archive>
  void visit(Archive& archive) {
    archive(uses_text, lexemes, ends, tokens, next);
  }
};

class Automaton {
 public:
  Automaton(const Grammar& grammar, const Vocabulary& vocabulary, const Limits& limits = {});

  // To be restored: `visit` must read all that another one's `visit` has written.
  struct ToBeRestored {};
  Automaton(const Grammar& grammar, const Vocabulary& vocabulary, ToBeRestored);
  template <typename Archive>
  void visit(Archive& archive) {  // all but completions, which are found again, and mask parts, which the vocabulary keeps
    archive(lexer_, memory_, parser_, mask_ids_, text_mask_ids_, masks_, first_outlines_, outline_ids_, outlines_, mask_bytes_, inside_);
  }

  Place start();
  bool step(Place& place, uint8_t byte);             // false, and unchanged, if the byte cannot follow
  bool step(Place& place, std::string_view bytes);   // likewise
  bool accepting(const Place& place);                // the text may end here
  bool surely_accepting(const Place& place);         // and no limit is met in telling so
  Place finished(const Place& place);                // after the lexeme under way; SetId::none if it cannot end here

  const Mask& mask(const Place& place);
  bool has_token(const Place& place, uint32_t token);  // in its mask
  const Mask* known_mask(const Place& place) const;
  struct Wall {  // of the token budget
    uint64_t left;        // tokens, the next one included
    size_t read;          // as above
    uint64_t needed;      // tokens of the plan
    uint32_t plan_token;  // always allowed; Vocabulary::no_token if the plan is to end here
    bool soft;            // close what is open: begin nothing new
  };
  // The limits that left out tokens. Where there are any, all that come to this place get the same mask.
  LimitSet fill(const Mask& mask, const Place& place, std::span<uint32_t> words, const Wall* wall = nullptr);
  bool allows(const Place& place, uint32_t token, const Wall* wall = nullptr);

  // A shortest text that completes `place`; `thorough`: also where searches have taken so long that some short one would do.
  std::string shortest_completion(const Place& place, bool thorough = false);
  void check_finish(bool steps);  // `steps`: also whether the shortest text can be followed within the limits
  std::string counted_completion(const Place& place);  // the one by which masks judge whether a token fits
  std::string forced_bytes(Place& place, size_t limit);  // moves on to where there is a choice
  std::vector<uint32_t> open_starts(std::string_view text, const Place& place);
  ByteSet next_bytes(const Place& place);

  // budget.cpp
  void prepare_budget();  // works out what all bounds need; else the first one does
  // Whether the text can surely be completed in at most `tokens`: from `place`, or also after any token of
  // `mask` but those that depend on the text. `read`: bytes of the longest text or value that has been remembered, at most.
  bool surely_fits(const Place& place, size_t read, uint64_t tokens);
  bool any_surely_fits(const Mask& mask, const Place& place, size_t read, uint64_t tokens);
  bool counts_by_rules(const Place& place) { return grammar_.self_delimiting && !text_matters(place); }
  uint64_t tokens_needed(const Place& place);  // of the way to finish that is known; never_fits if none is
  static constexpr uint64_t never_fits = ~uint64_t{0};
  bool fits(const Place& place, const Wall& wall);  // after a token
  struct Narrowed {
    bool by_budget;
    LimitSet limits;  // that were met in telling what fits
  };
  Narrowed fill_within(const Mask& mask, const Place& place, const Wall& wall, std::span<uint32_t> words);

  // lexeme_limits.cpp. `limits`: tokens of one lexeme, by kind of terminal.
  static constexpr uint64_t no_lexeme_limit = ~uint64_t{0};
  bool stays_in_lexeme(LexId lexer, std::string_view bytes);
  uint64_t lexeme_limit(LexId lexer, std::span<const uint64_t> limits) const;  // none if the lexeme cannot go on
  uint64_t lexeme_rest(LexId lexer);  // bytes of a shortest one
  // Takes tokens out of `words` that stay in the lexeme and make its rest no shorter: all, or those that begin a word.
  void keep_nearer(LexId lexer, bool words_only, std::span<uint32_t> words);

  Lexer& lexer() { return lexer_; }
  Parser& parser() { return parser_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  size_t memory_bytes() const;
  uint64_t shared_masks() const { return shared_masks_; }  // that were found to be those of other places
  void read_masks(size_t most);  // that are stored: now, instead of when they are asked for (storage.cpp)
  static constexpr size_t endless_questions = ~size_t{0};  // that the budget may ask about one mask

  static constexpr size_t max_searched_places = 100'000;
  const Limits& limits() const { return limits_; }
  void allow_mask() { lexer_.expressions().allow(limits_.mask_work, "MAX_MASK_WORK", Limit::mask_work); }
  void allow_call() { lexer_.expressions().allow(limits_.call_work, "MAX_CALL_WORK = 2000000 derivatives", Limit::call_work); }
  void allow_way() {  // a way to finish has enough to be found, whatever the limits are
    lexer_.expressions().allow(std::max(limits_.call_work, Limits{}.call_work), "MAX_CALL_WORK = 2000000 derivatives", Limit::call_work);
    lexer_.expressions().allow_searches(ExpressionStore::max_intersection_states, ExpressionStore::max_length_sets);
  }
  void allow_all() { lexer_.expressions().allow_all(); }

 private:
  Place entered(SetId set, TrackId track) { return {parser_.closure(set).start, set, TextId::empty, true, track}; }
  static Array<SetId> distinct(std::vector<SetId> sets);
  SetId advance(SetId set, MatchId matched, TextId text, TrackId track);  // outlines.cpp
  uint32_t number_of(SetId set);
  Outline::Look look_at(SetId set);
  Hash outline_key(const Place& place, const Outline& first);
  struct LookAhead {  // while a mask is computed
    bool noting = false;
    std::vector<SetId> sets;
    std::vector<Outline::Lexeme> lexemes;
    std::vector<SetId> ends;
  };
  void make(Mask& mask, const Place& place);
  std::shared_ptr<const MaskTokens> kept(MaskDraft draft);
  void keep_outline(const Mask& mask, const Place& place, const LookAhead& ahead);
  bool find_alike(Mask& mask, const Place& place);
  bool looks_alike(const Outline& outline, SetId set, std::vector<SetId>& sets);
  void compute(MaskDraft& mask, const Place& place);
  MatchId match_of(const std::vector<uint32_t>& positions, LexId lexer);
  void add_exits(MaskDraft& mask, const Exits& exits, const Place& next);
  void walk_exits(MaskDraft& mask, std::span<const uint32_t> nodes, const Place& next);
  void walk_suffixes(MaskDraft& mask, uint32_t node, Place place);
  void add_following(MaskDraft& mask, const LexemePart& part, const Place& next);
  const Bitmask& tokens_beginning(const ByteSet& bytes);
  void leave_to_text(MaskDraft& mask, uint32_t node) const;
  bool surely_goes_on(const Place& place) const;
  bool token_goes_on(uint32_t node, const Place& place);
  void keep_fitting(std::span<const uint32_t> tokens, const Place& place, const Wall& wall, std::span<uint32_t> words);
  void fill_way_to_finish(const Place& place, std::span<uint32_t> words);
  struct LimitedMask {  // of a place, as it was when it was first asked for
    Bitmask words;
    LimitSet limits;
  };
  const LimitedMask* limited_mask(const Place& place) const;
  void keep_limited_mask(const Place& place, LimitSet limits, std::span<const uint32_t> words);
  void settle(MaskDraft& mask) const;
  void add_tokens(std::vector<uint32_t>& to, uint32_t node) const;

  std::shared_ptr<const LexemePart> part(LexId lexer);
  std::shared_ptr<const LexemePart> make_part(LexId lexer, bool& shareable);
  Hash part_key(LexId lexer);
  bool is_shareable(LexId lexer) const;
  const LexemePart* part_after(const Exits& exits, LexId lexer);
  size_t count_tokens_after(const Exits& exits, LexId lexer);
  std::shared_ptr<const LexemePart> make_part_after(const Exits& exits, LexId lexer);
  struct Run {
    std::shared_ptr<const UnitRun> units;
    ExprId unit, rest;
    uint32_t minimum, maximum;
  };
  bool find_run(ExprId e, Run& run);
  std::shared_ptr<const UnitRun> unit_run(ExprId unit);
  void part_of_run(LexemePart& part, LexId lexer, const Run& run);
  std::shared_ptr<const UnitRun> endless_units(ExprId e, ExprId& unit);
  bool stays_inside(LexId lexer, ExprId unit);
  bool part_by_paths(LexemePart& part, LexId lexer);
  bool differing_bytes(uint32_t own, uint32_t plain, ByteSet& bytes);
  bool part_by_difference(LexemePart& part, LexId lexer);
  struct PartWalk;
  void walk_lexeme(PartWalk& walk, uint32_t node, uint32_t row);
  void finish_part(LexemePart& part, PartWalk& walk, LexId lexer);
  struct End {  // tokens after which the lexeme is in the same state
    LexId lexer;
    std::shared_ptr<const TokenSet> tokens;
  };
  struct EndsWalk;
  const std::vector<End>& ends_of(LexId lexer);
  std::vector<End> find_ends(LexId lexer);
  void walk_ends(EndsWalk& walk, uint32_t node, uint32_t row);
  std::shared_ptr<const UnitEnds> unit_ends(ExprId unit, const UnitRun& run);
  uint32_t row_of(LexId lexer);
  bool stays_in(uint32_t row, ByteGroups groups);
  uint32_t row_step(uint32_t row, uint8_t byte);
  void forget_rows();

  // completion.cpp. Costs are bytes, then edges; `endless` if there is no way.
  struct Segment {
    bool is_rule;
    uint32_t id;  // rule, or expression whose shortest match is meant
    bool fresh = false;  // it must be a text or value that was not read before
  };
  static constexpr uint32_t many = 0xFFFFu;  // fresh texts: and more
  static constexpr uint32_t many_tokens = 0x3FFFFFFFu;  // and more
  static constexpr uint32_t no_path = 0xFFFFFFFFu;
  struct OwnPath {  // a way from a state of a rule to the rule's end, the cheapest unless that takes long to find
    uint64_t cost;
    Segment segment;  // what comes first, if `reads`
    bool reads;
    uint32_t next;  // in paths_, the rest of it; or no_path
  };
  static constexpr uint64_t endless = ~uint64_t{0};
  const OwnPath& own_path(StateId state, MemoryId memory) { return paths_[own_path_id(state, memory)]; }
  uint32_t own_path_id(StateId state, MemoryId memory);
  static uint64_t path_key(StateId state, MemoryId memory) { return (uint64_t{index(state)} << 32) | index(memory); }
  uint64_t find_own_path(StateId state, MemoryId memory, bool keep);
  bool follow_rest_costs(StateId start, MemoryId memory, bool keep);
  void count_search(size_t states, uint32_t rule);
  enum class PathSearch : uint8_t { without_texts, along, with_texts };
  uint64_t search_own_path(StateId start, MemoryId memory, bool keep, PathSearch search, std::vector<uint32_t>& edges);
  uint64_t edge_cost(const Edge& edge);
  void find_rest_costs(uint32_t rule);
  void solve_rules();
  uint64_t item_cost(const Item& item);
  uint64_t origin_cost(OriginId origin);
  uint64_t text_cost(const std::string& text) const { return uint64_t{text.size()} << 16; }
  uint64_t lexeme_cost(ExprId lexeme) { return text_cost(lexer_.expressions().shortest(lexeme)); }
  void complete_item(Item item, std::string& out);
  std::string completion_by_rules(const Place& place);
  std::string completion_by_search(const Place& place);
  std::string completion_by_steps(Place place);
  void expand(const OwnPath& path, std::string& out);
  const Item* next_waiting(const std::vector<Item>& waiting);

  // budget.cpp
  const Bound& set_bound(SetId set, Unit unit);
  Bound find_set_bound(SetId set, Unit unit);
  Bound place_bound(const Place& place, Unit unit);
  Bound inside_bound(const Place& place, Unit unit);
  Bound mask_bound(const Mask& mask, const Place& place, Unit unit);
  Bound item_bound(const Item& item, Unit unit);
  // A way counted in tokens is that on which the text is completed only where the rules alone say how, and nothing on it
  // need be another text than the shortest.
  bool counts_tokens() const { return grammar_.self_delimiting && !grammar_.has_values; }
  Bound lexeme_bound(TermId terminal, Unit unit);
  MemoryId bound_memory(const Item& item);
  bool surely_endless(TermId terminal);
  bool excludes_few(uint32_t rule);
  struct WayOut {  // of an item to the end of its rule, or of an origin to the end of the text
    uint64_t cost;
    uint32_t fresh;
    void add(const WayOut& other) {
      cost = cost == endless || other.cost == endless ? endless : cost + other.cost;
      fresh = std::min(many, fresh + other.fresh);
    }
  };
  bool is_plain(StateId start, unsigned depth = 0);
  WayOut own_way(const Item& item);
  template <typename W, typename F>
  W along_waiting(OriginId origin, FlatMap<uint32_t, W>& known, F&& way_of);
  WayOut way_out(OriginId origin);
  template <typename F>
  bool within(size_t read, uint64_t tokens, F&& bound_in);
  struct Way {  // what is on it
    uint32_t fresh, tokens;
    void add(const Way& other) {
      fresh = std::min(many, fresh + other.fresh);
      tokens = std::min(many_tokens, tokens + other.tokens);
    }
  };
  Way way_of_path(uint32_t path, Unit unit, unsigned depth = 0);
  Way way_of_origin(OriginId origin);
  uint32_t tokens_of_shortest(ExprId e);
  uint64_t fresh_slack();
  uint64_t tokens_of(const Bound& bound, size_t read);
  bool may_ask(Hash key, size_t questions);
  Hash completion_key(const Place& place, bool by_rules);
  bool text_matters(const Place& place);
  void add_fitting(const Mask& mask, const Place& place, const Wall& wall, const Bitmask& all, std::span<uint32_t> words);
  void add_fitting_ends(const Place& place, const Wall& wall, Bitmask& known, std::span<uint32_t> words);

  const Grammar& grammar_;
  const Vocabulary& vocabulary_;
  const Limits limits_;
  Lexer lexer_;
  Memory memory_;
  Parser parser_;

  FlatMap<uint64_t, uint32_t> mask_ids_;
  FlatMap<Hash, uint32_t> text_mask_ids_;  // of those that depend on the text of the lexeme under way
  OnDemand<Mask> masks_;
  FlatMap<uint32_t, uint32_t> first_outlines_;  // by lexer state
  FlatMap<Hash, uint32_t> outline_ids_;         // the first of each list
  OnDemand<Outline> outlines_;
  LookAhead ahead_;
  std::vector<std::pair<uint32_t, Place>> suffixes_;  // on the way, in walk_suffixes
  std::deque<std::pair<ByteSet, Bitmask>> tokens_beginning_;
  FlatMap<Hash, uint32_t> token_ids_;
  std::vector<std::shared_ptr<const MaskTokens>> tokens_;  // made in this process
  size_t mask_bytes_ = 0;
  FlatMap<Hash, uint32_t> limited_mask_ids_;
  std::deque<LimitedMask> limited_masks_;
  LimitSet limits_met_;  // in what is asked now
  uint64_t shared_masks_ = 0;
  FlatMap<uint32_t, uint32_t> part_ids_;
  std::vector<std::shared_ptr<const LexemePart>> parts_;
  FlatMap<Hash, uint32_t> parts_after_;  // exits of one of parts_, by the lexer state that follows
  struct Row {  // dense transitions of a lexer state that trie walks meet: rows, or no_row, or unknown_row
    LexId lexer;
    MatchId matched;
    ByteGroups staying = 0, leaving = 0;  // groups all of whose bytes lead back here, and those that have another
    std::array<uint32_t, 256> next;
  };
  static constexpr uint32_t no_row = 0xFFFFFFFFu;
  static constexpr uint32_t unknown_row = 0xFFFFFFFEu;
  FlatMap<uint64_t, uint8_t> inside_;  // stays_inside, by lexer state and unit
  FlatMap<uint32_t, uint32_t> row_ids_;
  std::vector<std::unique_ptr<Row>> rows_;

  bool rules_solved_ = false;
  std::vector<uint64_t> rule_costs_;  // of a new activation
  std::vector<uint64_t> terminal_costs_;  // and one edge; 0: not known yet
  std::vector<uint64_t> rest_costs_;      // by state: to the rule's end, conditions aside
  std::vector<std::vector<uint32_t>> states_of_;                        // by rule
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> edges_into_;  // by state: source and edge
  std::vector<std::vector<uint32_t>> needs_;  // by rule and slot: the greatest number that a condition asks of a counter
  size_t path_limit_ = 0;                     // visits of one search
  bool cut_short_ = false;                    // some search met it
  size_t exact_states_ = 0;                   // that searches for cheapest ways have visited
  size_t search_words_ = 0;                   // of the memories of those
  FlatMap<uint64_t, uint32_t> path_ids_;
  std::deque<OwnPath> paths_;
  FlatMap<uint32_t, uint64_t> origin_costs_;

  std::array<std::vector<std::optional<Bound>>, units> set_bounds_;  // by set
  std::array<std::vector<std::optional<Bound>>, units> lexeme_bounds_;  // by terminal, the grammar's own and derived ones
  std::vector<std::optional<bool>> plain_;           // by state
  std::vector<std::optional<bool>> surely_endless_;  // by terminal of the grammar
  std::vector<std::optional<bool>> excludes_few_;    // by rule
  FlatMap<uint32_t, WayOut> ways_out_;               // by origin
  // What was asked for last: steps of one set mostly have one rule, memory and origin.
  struct BoundMemory {
    uint32_t rule = ~uint32_t{0};
    MemoryId memory{}, without{};
  };
  BoundMemory last_bound_memory_;
  std::pair<OriginId, WayOut> last_way_out_{OriginId{~uint32_t{0}}, {0, 0}};
  std::array<std::vector<std::optional<Way>>, units> path_ways_;  // by path
  FlatMap<uint32_t, Way> origin_ways_;
  FlatMap<uint32_t, uint32_t> shortest_tokens_;      // by expression
  uint64_t fresh_slack_ = 0;                      // by how much a fresh text may be longer than all read; 0: not known yet
  FlatMap<Hash, uint64_t> tokens_needed_;
  FlatMap<Hash, Limit> unknown_needs_;  // why those of tokens_needed_ that never fit are not known
  FlatMap<uint32_t, uint64_t> lexeme_rests_;
  FlatMap<uint32_t, uint32_t> end_ids_;
  std::deque<std::vector<End>> ends_;
  size_t end_bytes_ = 0;
  size_t searched_places_limit_ = max_searched_places;
  uint64_t swallow_slack_ = 0;  // by how much a lexeme may have to be longer so that it is not swallowed; 0: not known yet
  bool thorough_ = false;
  // What the budget may still ask about one mask, and has asked.
  size_t questions_left_ = endless_questions;
  FlatMap<Hash, uint8_t> asked_;
};

}  // namespace constrain
