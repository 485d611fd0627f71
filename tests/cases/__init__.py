"""Thirty faults that people met in transcription tools, and where each is kept from coming here.

A case has what is right, then the tests that hold it, below ``tests/``; "later" says what is still
to come. ``test_table`` reads this list.

B01 Audio behind a window's length is transcribed: each item once, in order; durations are right.
    cases/test_long_speech.py::test_every_string_once_and_in_order
    cases/test_long_speech.py::test_nothing_has_failed
    cases/test_real_speech.py::test_the_last_word_is_there
    checkpoints/test_long_recordings.py::test_every_string_once_and_in_order
    test_windows.py::test_windows_cover_the_recording
    test_cutting_speech.py::test_every_second_is_in_a_window_or_silent
B02 A bound on ids never ends a text in silence: the window is heard again in two, or told.
    cases/test_long_speech.py::test_dense_speech_is_whole
    cases/test_long_speech.py::test_half_an_hour_of_dense_speech
    checkpoints/test_accuracy.py::test_a_budget_that_is_too_small
    test_halves.py::test_halves_take_the_place_of_a_window_without_an_end
    test_halves.py::test_a_half_without_an_end_is_a_loss_and_told
B03 No word is lost at a cut, and all formats hold the same words.
    cases/test_long_speech.py::test_dense_speech_is_whole
    cases/test_real_speech.py::test_the_last_word_is_there
    writers/test_subtitles.py::test_words_are_those_of_the_text_format
    models/test_whisper.py::test_times_lie_in_the_window_and_no_word_is_lost
    models/test_whisper_rules.py::test_a_text_may_stop_where_the_audio_does
    later: the server's answer for the same file
B05 The last word is there at every length; silence behind it changes nothing; nothing crashes.
    cases/test_real_speech.py::test_the_last_word_is_there
    cases/test_real_speech.py::test_more_audio_never_has_fewer_words
    cases/test_real_speech.py::test_further_lengths
    cases/test_long_speech.py::test_silence_at_the_end_changes_nothing
    cases/test_hard_speech.py::test_a_quiet_answer_to_a_loud_question
    test_windows.py::test_there_is_no_sliver
    test_windows.py::test_thirty_seconds_are_one_window_and_one_sample_more_are_two
B07 What runs beside a file, in whatever order and batch, does not change its text.
    cases/test_repeatable.py::test_company_and_order_do_not_matter
    cases/test_repeatable.py::test_alone
    cases/test_repeatable.py::test_company_of_the_tiny_models
    models/test_whisper_generate.py::test_any_batch_size_and_any_order
    checkpoints/test_generate.py::test_two_windows_of_very_different_length
    engine/test_loop.py::test_any_slots_and_any_order
    engine/test_token_loop.py::test_any_slots_and_any_order
    later: parallel calls of the server
B08 Of damaged files the good parts are there at their times; what is lost is told; exit code 1.
    cases/test_media.py::test_damage_in_the_middle_leaves_both_sides
    audio/test_containers.py::test_damage_is_told_and_the_rest_stays_in_its_place
    audio/test_containers.py::test_a_file_that_is_cut_short_says_so
    audio/test_containers.py::test_an_mp4_with_its_index_in_front_that_is_cut_short
    audio/test_containers.py::test_an_mp4_that_lost_its_index
    audio/test_plain_formats.py::test_a_wav_that_is_cut_short_says_so
    audio/test_fuzz_reader.py::test_damaged_files
    cli/test_fuzz_command.py::test_damaged_files_among_good_ones
    test_pipeline.py::test_damage_is_passed_on
B09 Silence, noise and hum give no word; nothing comes behind the speech; quiet speech is heard.
    cases/test_no_speech.py::test_every_format_is_valid_and_empty
    cases/test_no_speech.py::test_a_buzz_is_no_voice
    cases/test_hard_speech.py::test_the_words_are_there
    cases/test_hard_speech.py::test_quiet_speech_has_the_words_of_loud_speech
    cases/test_hard_speech.py::test_nothing_comes_behind_the_speech
    checkpoints/test_accuracy.py::test_silence_and_noise_give_nothing
    audio/test_vad.py::test_quiet_speech_is_speech
    audio/test_vad.py::test_noise_is_none_at_any_level
    audio/test_vad.py::test_nor_is_silence_or_hum
    models/test_whisper.py::test_silence
B11 No speech is no failure: exit code 0, every format valid and empty, and the batch goes on.
    cases/test_no_speech.py::test_nothing_has_failed
    cases/test_no_speech.py::test_every_format_is_valid_and_empty
    cases/test_no_speech.py::test_the_batch_goes_on
    cases/test_no_speech.py::test_one_file_on_standard_output
    writers/test_subtitles.py::test_no_speech
    writers/test_json.py::test_no_speech
    writers/test_text.py::test_no_speech
    later: with word times
B12 Neither the prompt's words nor markup get into a text; a language is a code or null.
    cases/test_prompts.py::test_they_never_appear
    cases/test_prompts.py::test_they_do_not_fill_a_noise_that_sounds_like_a_voice
    cases/test_prompts.py::test_noise_stays_noise
    cases/test_prompts.py::test_speech_keeps_its_words
    cases/test_prompts.py::test_nor_where_the_model_has_to_hear_the_noise
    cases/test_prompts.py::test_a_misspelt_prompt_is_an_echo_too
    checkpoints/test_accuracy.py::test_context_does_not_leak
    cli/test_tiny_models.py::test_words_for_the_model
    test_guards.py::test_echoes_of_the_prompt
    models/test_qwen3_asr.py::test_golden_hypotheses
    models/test_qwen3_asr.py::test_whatever_is_said_comes_back_as_it_is
    models/test_qwen3_asr.py::test_what_the_user_writes_is_never_framing
    models/test_whisper.py::test_no_id_above_the_text_reaches_the_text
    later: the server and live streaming
B14 No time lies behind the end of the audio, not even where it ends in a word.
    cases/test_long_speech.py::test_a_recording_that_ends_in_a_word
    cases/test_real_speech.py::test_a_recording_that_ends_in_a_word
    models/test_whisper.py::test_times_lie_in_the_window_and_no_word_is_lost
    later: word times
B17 Cues last some time, come in order and do not overlap.
    cases/test_long_speech.py::test_dense_speech_is_whole
    test_windows.py::test_times_never_go_back
    test_windows.py::test_whatever_comes_in_times_go_on
    writers/test_subtitles.py::test_times_are_put_in_order
    writers/test_subtitles.py::test_whatever_comes_reads_back
    writers/test_subtitles.py::test_an_independent_checker_finds_no_fault
    later: word times
B19 Times are rounded before they are split; they have hours and no sign.
    writers/test_times.py::test_known_times
    writers/test_times.py::test_string_reads_back_to_the_nearest_millisecond
    writers/test_subtitles.py::test_srt
    writers/test_subtitles.py::test_vtt
B22 A pipe gives what the file gives, whatever its header states; an empty one is an error at once.
    cases/test_media.py::test_a_pipe_says_what_the_file_says
    cases/test_media.py::test_the_words_are_those_of_the_plain_file
    cli/test_end_to_end.py::test_a_pipe_gives_nothing_but_the_result
    cli/test_end_to_end.py::test_raw_pcm_and_a_named_pipe_in_a_loop_that_reads_standard_input
    cli/test_usage.py::test_empty_and_closed_standard_input
    cli/test_usage.py::test_standard_input_that_is_a_terminal
    audio/test_containers.py::test_pipes_are_read_while_they_are_written
    audio/test_containers.py::test_formats_are_told_from_content_and_last_as_long
    audio/test_plain_formats.py::test_wav_sizes_are_doubted
    audio/test_reading.py::test_named_pipes_are_read_like_standard_input
B23 No side of a stereo file is lost, and sides that cancel are told.
    cases/test_media.py::test_the_words_are_those_of_the_plain_file
    cases/test_media.py::test_channels_that_cancel_are_told
    audio/test_channels_and_rates.py::test_a_side_alone_is_kept
    audio/test_channels_and_rates.py::test_speakers_on_two_sides_that_take_turns_are_both_kept
    audio/test_channels_and_rates.py::test_speech_in_one_of_six_channels_is_kept
B24 Every kind of WAV and every sampling rate gives the same words; an unknown kind is named.
    cases/test_media.py::test_the_words_are_those_of_the_plain_file
    cases/test_media.py::test_each_failure_has_its_line_and_takes_nothing_with_it
    audio/test_plain_formats.py::test_plain_formats
    audio/test_lengths.py::test_as_many_samples_come_out_as_went_in
    audio/test_lengths.py::test_resampling_costs_no_sample
B25 A video without sound is one line, and the other files are done.
    cases/test_media.py::test_each_failure_has_its_line_and_takes_nothing_with_it
    audio/test_containers.py::test_a_video_without_sound
B27 An empty file is an error; one that is too short for a word says so; neither is a crash.
    cases/test_media.py::test_what_is_too_short_has_no_words
    cases/test_media.py::test_each_failure_has_its_line_and_takes_nothing_with_it
    cases/test_short_words.py::test_a_word_alone
    cases/test_short_words.py::test_no_sentence_is_made_up
    audio/test_lengths.py::test_less_than_a_tenth_of_a_second
    audio/test_lengths.py::test_a_header_alone_is_a_recording_without_audio
    test_pipeline.py::test_too_short_for_a_word
B29 The formats of numbers agree; bad samples are cleaned and told.
    cases/test_repeatable.py::test_half_precision_agrees
    cases/test_hard_speech.py::test_bad_samples_are_told
    cases/test_hard_speech.py::test_the_words_are_there
    models/test_whisper_generate.py::test_word_error_rate_in_either_dtype
    audio/test_plain_formats.py::test_numbers_that_are_none_are_cleaned
    engine/test_memory_and_device.py::test_the_default_dtype_follows_the_instructions
B30 Bad files fail alone, each with its reason; the model is loaded once.
    cases/test_media.py::test_each_failure_has_its_line_and_takes_nothing_with_it
    cli/test_batch.py::test_bad_files_do_not_stop_a_batch
    cli/test_end_to_end.py::test_a_folder_with_odd_names_and_bad_files
    cli/test_tiny_models.py::test_a_folder_to_subtitles_and_json
B31 A failure has an exit code, usage another one, and its reason on stderr; there is no output.
    cli/test_usage.py::test_wrong_usage
    cli/test_usage.py::test_inputs_that_cannot_be_read_need_no_model
    cli/test_usage.py::test_each_of_many_unreadable_inputs_is_named
    cli/test_usage.py::test_a_bad_place_is_found_before_the_model_loads
B32 No result overwrites another one or an input.
    writers/test_outputs.py::test_two_results_at_one_place
    writers/test_outputs.py::test_two_results_at_one_place_through_a_link
    writers/test_outputs.py::test_names_that_differ_in_case_are_two
    writers/test_outputs.py::test_a_result_never_overwrites_an_input
    writers/test_outputs.py::test_below_a_folder_with_its_tree
    audio/test_sources.py::test_the_same_file_counts_once
    cli/test_usage.py::test_clashing_results_are_refused
B34 Odd names are found and kept, byte for byte.
    cli/test_end_to_end.py::test_a_folder_with_odd_names_and_bad_files
    cases/test_runs.py::test_a_name_that_begins_with_a_dash
    audio/test_sources.py::test_odd_names_pass_byte_for_byte
    audio/test_sources.py::test_brackets_never_glob
    writers/test_output_files.py::test_names_at_the_limits
B36 A bad place is found before the work; where it goes bad later, no text is lost.
    cli/test_usage.py::test_a_bad_place_is_found_before_the_model_loads
    cli/test_batch.py::test_a_place_that_goes_bad_loses_no_text
    cli/test_batch.py::test_files_too_large_for_the_disk
    writers/test_output_files.py::test_a_write_protected_folder
    writers/test_output_files.py::test_a_write_protected_file
    writers/test_output_files.py::test_a_disk_that_is_full_is_found_out_ahead
    writers/test_output_files.py::test_a_folder_where_the_file_should_be
B37 A stop leaves whole files and nothing else; the next run goes on from there.
    cli/test_end_to_end.py::test_signals_leave_whole_files_and_nothing_else
    cli/test_end_to_end.py::test_a_reader_that_leaves_stops_the_run
    cli/test_stopping.py::test_signals_from_the_first_moment_on
    cli/test_thousand_files.py::test_stopped_and_run_again_it_comes_to_the_same
    cli/test_resume.py::test_what_is_not_complete_is_done_again_in_all_formats
    writers/test_completeness.py::test_what_was_cut_off_is_not
B39 Standard output holds the result alone; stderr holds no library's warnings and no bar.
    cases/test_runs.py::test_standard_output_holds_the_result_and_nothing_else
    cases/test_runs.py::test_twenty_files_say_little
    cli/test_progress.py::test_nothing_moves_where_nobody_watches
    audio/test_containers.py::test_nothing_reaches_standard_error
B41 What is on the machine needs no network; what is missing is told in a line, at once.
    cases/test_runs.py::test_what_is_on_the_machine_needs_no_network
    cases/test_runs.py::test_a_missing_model_is_told_at_once
    models/test_no_socket.py::test_cached
    models/test_folders.py::test_a_missing_file_is_named
    models/test_hub.py::test_offline_asks_nobody
    models/test_hub.py::test_a_closed_port_is_noticed_at_once
    cli/test_tiny_models.py::test_a_download_that_stopped_half_way
B42 The same file gives the same bytes in every run, drawn or not.
    cases/test_repeatable.py::test_five_runs_are_equal_to_the_byte
    cases/test_repeatable.py::test_drawn_texts_depend_on_the_seed_alone
    cases/test_repeatable.py::test_company_and_order_do_not_matter
    test_recognizer.py::test_equal_seeds_draw_equal_texts
    engine/test_sampler.py::test_draws_depend_on_the_seed_alone
B44 All spellings of a language are one; an unknown one is wrong usage before a model is loaded.
    cases/test_runs.py::test_spellings_of_a_language_give_one_result
    cases/test_runs.py::test_a_script_that_no_model_can_be_told_is_mentioned
    cli/test_usage.py::test_an_unknown_language_lists_the_choices
    cli/test_tiny_models.py::test_what_a_model_cannot_do
    test_languages.py::test_every_spelling_is_one_code
    test_languages.py::test_unknown_is_a_usage_error
    models/test_whisper.py::test_languages_that_a_release_does_not_know
    later: the server
B47 Subtitles escape what they must, and read back to the same text.
    writers/test_subtitles.py::test_text_of_a_cue
    writers/test_subtitles.py::test_whatever_comes_reads_back
    writers/test_subtitles.py::test_an_independent_checker_finds_no_fault
B48 Answers of the server have the right shape, type and status.
    later: the server
"""
