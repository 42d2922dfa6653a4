"""Every claim that is tested on private profiles is tested on profiles that anyone has, too.

The corpus and the captured bottlenecks are not part of the project, so their tests skip for an outsider.  Each of them
has a sibling here: tests of the same claim on a drawn trace, or on a capture that the test run records itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from places import ROOT

TESTS = ROOT / "tests"
PRIVATE = {"corpus", "bottleneck_captures", "bottleneck_cases"}
ELSEWHERE = ("browser", "web")  # the page's tests draw what they show

# The test on private profiles -> the tests of the same claim; one of another file with the path of that.
SIBLINGS: dict[str, dict[str, str]] = {
    "agents/test_mcp.py": {
        "test_an_agent_finds_the_bottleneck_of_recorded_programs": (
            "test_an_agent_finds_the_planted_bottleneck_of_five_programs_by_tool_calls"
        ),
    },
    "sheets/test_session_sheet.py": {
        "test_memory_and_workers_are_shown_where_they_are_recorded": (
            "test_memory_and_workers_of_a_drawn_session_are_shown"
        ),
    },
    "analysis/account/test_pages_agree.py": {
        "test_pages_agree_on_real_profiles": "test_pages_agree_on_a_picture test_pages_agree_whatever_was_recorded",
        "test_all_tools_say_the_same_step_times_on_real_profiles": (
            "test_all_tools_say_the_same_step_times_on_a_picture"
        ),
        "test_a_comparison_shows_the_account_of_both_sides": (
            "analysis/compare/test_compare.py::test_the_parts_of_the_step_add_up_to_its_difference"
        ),
    },
    "analysis/account/test_replay.py": {
        "test_the_replay_of_a_real_profile_is_within_a_tenth_of_it": (
            "test_the_replay_of_a_fresh_capture_is_within_a_fifth_of_it"
        ),
        "test_the_replay_of_recorded_programs_is_right_on_average": (
            "test_the_replay_of_a_fresh_capture_is_within_a_fifth_of_it"
        ),
    },
    "analysis/advice/test_advice.py": {
        "test_the_first_advice_is_the_bottleneck_and_once_fixed_there_is_none": (
            "test_what_a_rule_says_of_a_picture test_the_first_advice_on_a_fresh_slow_map_is_its_python_function "
            "test_a_fresh_healthy_capture_has_no_advice_on_its_input"
        ),
    },
    "analysis/advice/test_whatif.py": {
        "test_what_if_through_the_api": "test_what_if_of_a_fresh_capture_through_the_api",
        "test_workers_of_a_real_job_are_predicted": "test_input_on_one_worker_takes_at_least_as_long_as_before",
        "test_what_if_of_a_class_is_the_advice_of_that_class": "test_what_if_of_a_fresh_capture_through_the_api",
    },
    "analysis/trust/test_trust.py": {
        "test_real_recordings_raise_no_false_alarm": "test_a_sound_recording_raises_no_doubt",
    },
    "analysis/advice/test_advice_agrees.py": {
        "test_verdict_and_advice_of_real_profiles_go_together": (
            "test_verdict_and_advice_of_fresh_captures_go_together"
        ),
        "test_verdict_and_advice_of_known_bottlenecks_go_together": (
            "test_verdict_and_advice_of_fresh_captures_go_together"
        ),
    },
    "analysis/advice/test_gain.py": {
        "test_gains_are_near_the_real_ones_and_no_verdict_contradicts": (
            "test_a_step_is_not_shorter_than_the_computation_that_a_save_hides "
            "analysis/account/test_verdict.py::test_without_a_change_the_longest_cause_is_the_limit"
        ),
    },
    "analysis/compare/test_compare.py": {
        "test_a_fix_is_faster_by_about_what_was_measured": "test_a_step_of_half_the_time_is_twice_as_fast",
        "test_two_runs_of_one_program_are_within_the_noise": (
            "test_steps_that_scatter_more_than_they_differ_are_within_the_noise"
        ),
        "test_a_table_compares_all_of_a_report": (
            "analysis/compare/test_differences.py::test_rows_with_equal_keys_add_up_and_totals_are_per_step"
        ),
        "test_workers_for_the_input_help": "test_a_faster_step_says_by_how_much_and_what_fell",
        "test_every_corpus_session_against_itself_is_all_zeros": (
            "test_a_profile_against_itself_is_all_zeros_and_within_the_noise"
        ),
    },
    "analysis/input/test_input_pipeline.py": {
        "test_dataloader_of_real_profiles_with_and_without_workers": (
            "test_a_loader_in_the_main_process_shows_what_runs_inside_it "
            "test_a_wait_for_worker_processes_is_work_of_unknown_kind"
        ),
        "test_ops_and_steps_equal_those_of_xprof": "test_a_fresh_capture_of_tensorflow_equals_xprof",
        "test_where_xprof_counts_waiting_as_preprocessing_we_count_work": (
            "test_self_time_leaves_out_what_runs_inside_and_work_what_other_threads_do_meanwhile"
        ),
        "test_where_xprof_shows_no_copies_of_newer_cuda_we_count_them_as_enqueueing": (
            "test_calls_that_start_a_copy_to_a_device_are_enqueueing"
        ),
    },
    "analysis/ops/test_device_use.py": {
        "test_a_real_job_has_the_figures_of_the_plugin": (
            "test_blocks_of_kernels_that_run_at_once_add_up_to_one_at_most "
            "test_each_device_tells_what_its_own_kernels_tell"
        ),
    },
    "analysis/ops/test_kernel_stats.py": {
        "test_every_kernel_of_xprof_is_ours": "test_a_row_is_a_kernel_its_op_and_its_launch",
        "test_ranks_are_those_of_xprof": "test_a_row_is_a_kernel_its_op_and_its_launch",
        "test_hosts_are_added_up_where_xprof_lists_them_one_by_one": "test_equal_rows_of_hosts_add_up",
        "test_garbage_is_unknown_where_xprof_shows_it": "test_the_text_of_a_kernel",
        "test_shared_memory_of_amd_devices_is_read": "test_the_text_of_a_kernel",
        "test_kernels_of_pytorch": "test_the_stats_of_pytorch",
    },
    "analysis/ops/test_modules.py": {
        "test_modules_of_a_real_model": "test_a_module_holds_the_modules_it_calls_and_the_work_it_launches",
    },
    "analysis/ops/test_op_shapes.py": {
        "test_calls_and_device_time_of_a_real_trace": "test_ops_of_one_name_are_apart_by_shape",
    },
    "analysis/ops/test_op_stats.py": {
        "test_times_of_ops_are_those_of_xprof": "test_times_of_ops_in_a_fresh_capture_are_those_of_xprof",
        "test_idle_time_of_devices_is_that_of_xprof": "test_idle_of_a_device_is_when_none_of_its_streams_works",
        "test_shares_and_rates_are_those_of_xprof": (
            "test_shares_are_of_one_side_and_0_on_the_other "
            "test_copies_of_an_op_are_apart_from_its_kernels_and_state_their_rate"
        ),
        "test_the_kernels_of_one_xla_instruction_are_one_occurrence": (
            "test_an_xla_instruction_ran_as_often_as_its_rarest_kernel"
        ),
        "test_older_profiles_have_device_ops_too": "test_the_kernels_of_an_op_add_up_and_one_run_counts_once",
    },
    "analysis/ops/test_sequences.py": {
        "test_sequences_of_a_real_model": "test_what_an_op_launches_is_a_sequence test_repeated_kernels_on_a_stream",
    },
    "analysis/overview/test_overview.py": {
        "test_the_bottleneck_of_a_slow_program_is_its_verdict": (
            "test_input_percent_and_verdict truth/test_parity_xprof.py::test_a_slow_map_is_input_bound"
        ),
        "test_healthy_programs_are_bound_by_their_computation": (
            "truth/test_parity_xprof.py::test_a_healthy_pipeline_is_not"
        ),
        "test_once_it_is_fixed_a_program_is_bound_by_its_computation": (
            "truth/test_parity_xprof.py::test_a_healthy_pipeline_is_not"
        ),
    },
    "analysis/resources/test_memory_profile.py": {
        "test_figures_and_timelines_are_those_of_xprof": ("test_fresh_tensorflow_captures_have_the_figures_of_xprof"),
        "test_difference_line_starts": "test_lines_of_different_threads_are_put_in_order_of_time",
        "test_the_breakdown_is_that_of_xprof_where_the_peak_is_in_the_first_step": (
            "test_allocations_that_are_alive_at_the_peak_are_added_up_by_op_region_type_and_shape"
        ),
        "test_difference_the_breakdown_holds_what_earlier_steps_left": (
            "test_an_allocation_of_an_earlier_step_is_still_alive_at_the_peak"
        ),
        "test_difference_the_peak_since_the_start_is_the_largest_seen": (
            "test_the_peak_since_the_program_began_may_lie_before_the_capture"
        ),
        "test_difference_an_allocation_without_an_op_is_given_to_what_is_around_it": (
            "test_without_a_stated_op_the_innermost_op_around_the_allocation_counts"
        ),
        "test_the_rows_of_a_breakdown_add_up_to_the_memory_in_use": "test_what_is_alive_is_what_a_plain_replay_leaves",
    },
    "analysis/steps/test_hosts.py": {
        "test_both_hosts_of_the_corpus_count": "test_a_step_lasts_as_long_as_on_its_slowest_host",
    },
    "analysis/steps/test_infer.py": {
        "test_the_layers_of_a_language_model_are_no_steps": "test_many_layers_between_little_else_are_still_layers",
        "test_unmarked_profiles_of_the_corpus_have_steps": (
            "truth/test_parity_xprof.py::test_steps_of_a_loop_without_marks "
            "truth/test_parity_xprof.py::test_jax_steps_without_marks"
        ),
    },
    "analysis/steps/test_steps.py": {
        "test_a_jax_program_that_runs_ahead_of_its_computation_has_the_steps_of_its_own_clock": (
            "capture/test_capture_frameworks.py::"
            "test_steps_of_a_jax_loop_that_waits_for_nothing_are_as_long_as_their_work"
        ),
    },
    "analysis/trace/test_attribution.py": {
        "test_real_device_work_is_attributed": "test_shares_add_up_and_the_rest_is_named",
    },
    "analysis/waits/test_critical_path.py": {
        "test_the_path_of_a_job_that_waits_in_python_is_its_device": (
            "test_a_device_that_the_host_keeps_ahead_of_is_the_path"
        ),
        "test_paths_of_real_jobs": "test_every_moment_of_a_step_is_given_to_one_part",
    },
    "analysis/waits/test_syncs.py": {
        "test_waits_of_a_real_job": (
            "test_a_wait_is_told_by_call_op_and_line test_frames_of_libraries_are_no_call_sites"
        ),
    },
    "analysis/workers/test_distributed.py": {
        "test_collectives_of_a_real_job": "test_two_processes_of_which_one_is_slow",
        "test_collectives_are_what_their_kernels_say": "test_operations_by_name test_bytes_of_inputs",
    },
    "analysis/workers/test_pod_viewer.py": {
        "test_two_gpu_hosts_beside_xprof": (
            "test_steps_of_a_fresh_capture_are_those_of_xprof test_host_work_counts_only_while_the_device_does_nothing"
        ),
        "test_the_rank_that_writes_a_report_holds_the_others_up": (
            "test_the_slowest_host_is_named_with_what_it_spends_the_time_on"
        ),
        "test_the_parts_of_every_row_add_up_to_it": "test_the_parts_of_every_row_of_a_fresh_capture_add_up_to_it",
    },
    "export/test_export.py": {
        "test_real_profiles_come_back_as_they_were": "test_our_own_reader_reads_what_was_written",
        "test_perfetto_sees_every_slice_of_real_profiles": "test_perfetto_sees_every_slice_on_its_track",
    },
    "formats/test_kineto.py": {
        "test_mutations_give_a_sound_trace_or_a_plain_error": (
            "truth/test_torch_fuzz.py::test_no_damage_makes_a_tool_fail"
        ),
        "test_the_size_of_the_pieces_does_not_matter": "test_a_large_file_is_read_in_pieces",
        "test_a_real_trace_equals_its_json": "test_a_fresh_trace_equals_its_json",
        "test_links_of_a_real_trace_equal_its_ids": (
            "test_a_kernel_without_external_id_finds_its_op_through_its_call "
            "test_a_call_without_external_id_belongs_to_the_innermost_op_around_it"
        ),
        "test_facts_of_real_devices": "test_device_properties_become_stats_of_their_plane",
        "test_precision_of_real_kernels": "test_precision_told_by_kernel_names",
        "test_captures_of_pytorch_on_a_cpu": "test_a_fresh_trace_equals_its_json",
    },
    "analysis/hlo/test_hlo_module.py": {
        "test_real_programs_are_what_protobuf_reads": (
            "test_instructions_and_their_links test_shapes_are_as_xla_writes_them test_where_an_instruction_comes_from"
        ),
    },
    "analysis/xla/test_hlo_stats.py": {
        "test_times_and_costs_are_xprofs": (
            "test_all_kernels_of_a_run_are_one_occurrence "
            "analysis/xla/test_costs.py::test_costs_are_those_of_xlas_own_analysis"
        ),
        "test_ops_add_up_to_the_busy_time_of_the_devices": (
            "test_kernels_are_known_by_their_launch_or_their_name_and_the_rest_is_told "
            "test_trees_hold_all_time_at_every_level"
        ),
        "test_the_tree_by_category_is_xprofs": "test_trees_hold_all_time_at_every_level",
    },
    "analysis/xla/test_inference.py": {
        "test_a_real_server": "test_a_batch_lasts_until_its_work_on_the_device_is_done",
    },
    "analysis/xla/test_memory_viewer.py": {
        "test_peaks_are_xprofs": (
            "test_live_bytes_over_the_order_of_the_program test_what_is_alive_at_the_peak_and_what_would_free_it"
        ),
    },
    "analysis/xla/test_roofline.py": {
        "test_intensities_are_xprofs": "test_an_op_and_its_program_against_the_roofs",
        "test_no_op_of_pytorch_beats_its_device": (
            "test_matrix_products_of_pytorch test_convolutions_of_pytorch test_attention_of_pytorch"
        ),
        "test_steps_use_as_much_of_the_hardware_as_in_hlo_stats": (
            "test_a_device_that_only_copies_is_no_part_of_the_peak"
        ),
    },
    "formats/test_session.py": {
        "test_every_file_of_the_corpus_is_known_by_its_content": "test_a_format_is_known_by_the_content",
        "test_a_cut_or_flipped_prefix_never_fails": "test_a_cut_or_flipped_prefix_of_a_drawn_file_never_fails",
        "test_a_remote_logdir_is_searched_as_a_local_one": "test_a_drawn_remote_logdir_is_searched_as_a_local_one",
        "test_a_missing_remote_path_points_at_profiles_nearby": (
            "test_profiles_that_a_wrong_path_may_mean_are_pointed_at"
        ),
        "test_a_copied_logdir_keeps_its_order": (
            "test_runs_named_by_time_are_ordered_by_name_whatever_the_times_of_the_files"
        ),
    },
    "formats/test_perfetto.py": {
        "test_exports_of_real_profiles_come_back": "test_our_own_export_comes_back",
        "test_perfettos_own_bindings_agree": "test_perfettos_own_bindings_agree_on_a_drawn_trace",
        "test_a_torch_trace_gives_what_its_json_gives": "test_a_drawn_torch_trace_gives_what_its_json_gives",
    },
    "formats/test_riegeli.py": {
        "test_real_profiles_give_what_their_xspace_gives": "test_every_chunk_and_compression",
        "test_xprof_reads_what_these_tests_write": "test_the_writer_of_these_tests_follows_the_specification",
    },
    "formats/test_xspace_damage.py": {
        "test_a_real_file_cut_anywhere_keeps_the_events_before_the_cut": "test_a_small_file_cut_at_every_byte",
        "test_a_file_of_ours_cut_anywhere_keeps_the_names_too": "test_a_small_file_cut_at_every_byte",
        "test_no_index_leaves_its_array": "test_many_broken_events_write_over_nothing",
        "test_ten_thousand_mutations": "test_random_bytes",
    },
    "formats/test_xspace_kinds.py": {
        "test_the_kinds_of_a_pytorch_trace_survive": "formats/test_xspace_writer.py::test_reads_back_as_it_was",
        "test_names_of_known_writers_tell_their_kinds_and_nothing_is_added": (
            "formats/test_xspace_reader.py::test_what_an_event_on_a_host_thread_is"
        ),
    },
    "formats/test_xspace_reader.py": {
        "test_a_real_file_is_read_as_protobuf_reads_it": "test_a_fresh_file_is_read_as_protobuf_reads_it",
    },
    "formats/test_xspace_writer.py": {
        "test_the_pieces_are_the_file": "test_many_events_are_written_in_several_rounds",
    },
    "truth/test_everything.py": {
        "test_every_corpus_session_goes_through_every_tool_and_form": (
            "test_every_fresh_capture_goes_through_every_tool_and_form"
        ),
        "test_the_parts_of_a_step_add_up_to_the_step": (
            "test_a_fresh_capture_has_the_steps_of_its_program_and_their_parts_add_up"
        ),
        "test_every_bottleneck_capture_has_the_ten_steps_of_its_program": (
            "test_a_fresh_capture_has_the_steps_of_its_program_and_their_parts_add_up"
        ),
    },
    "truth/test_parity_hta.py": {
        "test_temporal_breakdown_and_overlap": "analysis/workers/test_distributed.py::test_the_parts_of_one_rank",
        "test_kernel_types": "analysis/workers/test_distributed.py::test_the_parts_of_one_rank",
        "test_idle_time_by_cause": (
            "analysis/waits/test_idle.py::test_a_gap_is_the_host_s_if_the_launch_began_after_the_stream_was_empty"
        ),
        "test_kernels": "analysis/ops/test_kernel_stats.py::test_a_row_is_a_kernel_its_op_and_its_launch",
    },
    "truth/test_parity_xprof.py": {
        "test_gpu_step_time_is_xprofs": "test_tensorflow_steps_are_xprofs",
        "test_gpu_compute_is_xprofs_but_for_the_copies": (
            "analysis/overview/test_overview.py::test_the_mean_breakdown_adds_up_to_the_mean_step"
        ),
        "test_gpu_precision_is_xprofs": "analysis/overview/test_overview.py::test_placement_and_precision",
        "test_gpu_environment": "analysis/overview/test_overview.py::test_environment_of_several_hosts",
        "test_gpu_where_xprof_is_wrong": "analysis/overview/test_overview.py::test_placement_and_precision",
        "test_top_ops_are_xprofs": "analysis/overview/test_overview.py::test_the_ten_largest_ops",
        "test_ops_are_placed_by_how_often_they_run": (
            "analysis/overview/test_overview.py::test_placement_and_precision"
        ),
    },
    "truth/test_torch_truth.py": {
        "test_kernels_copies_loaders_and_steps": (
            "analysis/ops/test_kernel_stats.py::test_the_stats_of_pytorch "
            "analysis/ops/test_kernel_stats.py::test_bytes_of_a_copy "
            "truth/test_torch_fuzz.py::test_the_whole_trace_goes_through_every_tool"
        ),
    },
}

# These say something about the private files themselves, or compare the docs with a profile that the docs describe.
WITHOUT_SIBLING = {
    "analysis/advice/test_advice_agrees.py::test_the_corpus_is_all_here",
    "formats/test_session.py::test_the_sessions_of_the_corpus",
    "formats/test_xspace_damage.py::test_an_excerpt_is_a_whole_file",
    "project/test_docs_snippets.py::test_the_readme_shows_what_a_summary_says",
    "project/test_docs_snippets.py::test_the_budget_file_of_the_page_names_figures_of_a_recorded_job",
    "project/test_docs_snippets.py::test_the_page_on_comparing_shows_what_a_comparison_says",
}


@cache
def parse(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]


def arguments_of(function: ast.FunctionDef) -> set[str]:
    return {argument.arg for argument in function.args.args}


def find_private(functions: list[ast.FunctionDef]) -> set[str]:
    """The fixtures of a file that need a private one, with the private ones themselves."""
    private = set(PRIVATE)
    fixtures = [each for each in functions if any("fixture" in ast.unparse(mark) for mark in each.decorator_list)]
    while more := {each.name for each in fixtures if arguments_of(each) & private} - private:
        private |= more
    return private


def find_tests(private: bool) -> Iterator[str]:
    """Every test that needs private profiles, or every one that needs none, as FOLDER/FILE::NAME."""
    for path in sorted(TESTS.rglob("test_*.py")):
        functions, name = parse(path), path.relative_to(TESTS)
        needs = find_private(functions)
        for function in functions:
            if function.name.startswith("test_") and bool(arguments_of(function) & needs) == private:
                yield f"{name.as_posix()}::{function.name}"


def test_each_test_on_private_profiles_has_a_sibling_that_anyone_can_run() -> None:
    private = {test for test in find_tests(private=True) if not test.startswith(ELSEWHERE)}
    known = {f"{path}::{name}" for path, tests in SIBLINGS.items() for name in tests}

    assert private - known - WITHOUT_SIBLING == set(), "give them siblings, and name these in SIBLINGS"
    assert (known | WITHOUT_SIBLING) - private == set(), "these are gone, or need no private profile any more"


def test_the_siblings_exist_and_need_no_private_profile() -> None:
    siblings = {
        sibling if "::" in sibling else f"{path}::{sibling}"
        for path, tests in SIBLINGS.items()
        for names in tests.values()
        for sibling in names.split()
    }

    assert siblings - set(find_tests(private=False)) == set()
