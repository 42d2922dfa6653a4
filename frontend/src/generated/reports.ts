/** Made by scripts/gen_types.py; change the declarations in Python and run `make format`. */
export type Role =
  | "name"
  | "label"
  | "term"
  | "type"
  | "shape"
  | "source"
  | "host"
  | "place"
  | "step"
  | "ordinal"
  | "instant"
  | "duration"
  | "share"
  | "count"
  | "size"
  | "measure"
  | "change"
  | "flag"
  | "complete"
  | "text"
  | "meaning";
export type Kind = "float" | "int" | "str" | "bool" | "ints";

/** The tables and figures of every tool's report, by their ids, with the types of their fields. */
export interface Reports {
  overview: {
    step_account: {
      kind: "table";
      fields: {
        cause: string | null;
        ms: number | null;
        percent: number | null;
        idle_ms: number | null;
        culprit: string | null;
        place: string | null;
        layer: string | null;
        calls: number | null;
        culprit_ms: number | null;
        meaning: string | null;
      };
    };
    step_time: {
      kind: "figures";
      fields: {
        mean: number | null;
        std: number | null;
        min: number | null;
        max: number | null;
        count: number | null;
        between_steps_percent: number | null;
        input_bound_percent: number | null;
        profiling_cost_percent: number | null;
      };
    };
    top_ops: {
      kind: "table";
      fields: {
        name: string | null;
        category: string | null;
        self_time_ms: number | null;
        self_percent: number | null;
        cumulative_percent: number | null;
        calls: number | null;
      };
    };
    placement: {
      kind: "figures";
      fields: {
        host_op_percent: number | null;
        device_op_percent: number | null;
        host_eager_percent: number | null;
        compute_16bit_percent: number | null;
        compute_32bit_percent: number | null;
      };
    };
    environment: {
      kind: "figures";
      fields: {
        host_count: number | null;
        device_type: string | null;
        device_count: number | null;
        devices_used: number | null;
        framework: string | null;
        capture_ms: number | null;
        pause_ms: number | null;
      };
    };
  };
  steps: {
    rows: {
      kind: "table";
      fields: {
        step: number | null;
        name: string | null;
        host: string | null;
        start_ms: number | null;
        duration_ms: number | null;
        unknown_ms: number | null;
        input_ms: number | null;
        python_ms: number | null;
        host_compute_ms: number | null;
        launch_ms: number | null;
        device_compute_ms: number | null;
        device_gap_ms: number | null;
        copy_ms: number | null;
        communication_ms: number | null;
        compile_ms: number | null;
        sync_ms: number | null;
        checkpoint_ms: number | null;
        contention_ms: number | null;
        complete: boolean | null;
        usual: boolean | null;
        requests: number | null;
        tokens: number | null;
        prefill: number | null;
        decode: number | null;
      };
    };
    guide: {
      kind: "table";
      fields: {
        step: number | null;
        name: string | null;
        host: string | null;
        duration_ms: number | null;
        compilation: number | null;
        output: number | null;
        input: number | null;
        kernel_launch: number | null;
        host_compute: number | null;
        device_collectives: number | null;
        device_to_device: number | null;
        device_compute: number | null;
        other: number | null;
      };
    };
  };
  "input-pipeline": {
    input: {
      kind: "figures";
      fields: {
        verdict: string | null;
        level: string | null;
        input_percent: number | null;
        input_time_ms: number | null;
        largest: string | null;
      };
    };
    step_time: {
      kind: "figures";
      fields: {
        mean: number | null;
        std: number | null;
        min: number | null;
        max: number | null;
        count: number | null;
      };
    };
    waiting: {
      kind: "figures";
      fields: {
        mean: number | null;
        std: number | null;
        min: number | null;
        max: number | null;
        cores: number | null;
      };
    };
    steps: {
      kind: "table";
      fields: {
        step: number | null;
        name: string | null;
        duration_ms: number | null;
        fetch_ms: number | null;
        waiting_mean_ms: number | null;
        waiting_min_ms: number | null;
        waiting_max_ms: number | null;
        waiting_most: string | null;
        unknown_ms: number | null;
        input_ms: number | null;
        python_ms: number | null;
        host_compute_ms: number | null;
        launch_ms: number | null;
        device_compute_ms: number | null;
        device_gap_ms: number | null;
        copy_ms: number | null;
        communication_ms: number | null;
        compile_ms: number | null;
        sync_ms: number | null;
        checkpoint_ms: number | null;
        contention_ms: number | null;
        complete: boolean | null;
      };
    };
    host_breakdown: {
      kind: "table";
      fields: {
        category: string | null;
        time_ms: number | null;
        percent: number | null;
        meaning: string | null;
      };
    };
    loaders: {
      kind: "table";
      fields: {
        loader: string | null;
        calls: number | null;
        total_ms: number | null;
        avg_ms: number | null;
        max_ms: number | null;
        step_percent: number | null;
        workers: number | null;
        pinning: string | null;
        pins: number | null;
        pin_ms: number | null;
      };
    };
    queue: {
      kind: "figures";
      fields: {
        state: string | null;
        workers: number | null;
        prepare_ms: number | null;
        busy_percent: number | null;
        useful_workers: number | null;
      };
    };
    workers: {
      kind: "table";
      fields: {
        worker: string | null;
        host: string | null;
        batches: number | null;
        prepare_ms: number | null;
        max_ms: number | null;
        send_ms: number | null;
        busy_percent: number | null;
        function: string | null;
        place: string | null;
        function_percent: number | null;
      };
    };
    copies: {
      kind: "table";
      fields: {
        memory: string | null;
        count: number | null;
        bytes: number | null;
        total_ms: number | null;
        gigabytes_per_s: number | null;
        exposed_ms: number | null;
        call_ms: number | null;
      };
    };
    rows: {
      kind: "table";
      fields: {
        op: string | null;
        count: number | null;
        total_ms: number | null;
        total_percent: number | null;
        self_ms: number | null;
        self_percent: number | null;
        category: string | null;
        work_ms: number | null;
      };
    };
  };
  "op-stats": {
    rows: {
      kind: "table";
      fields: {
        rank: number | null;
        where: string | null;
        type: string | null;
        name: string | null;
        occurrences: number | null;
        total_us: number | null;
        avg_us: number | null;
        total_self_us: number | null;
        avg_self_us: number | null;
        self_percent: number | null;
        cumulative_self_percent: number | null;
        gflop_per_s: number | null;
        gib_per_s: number | null;
        flop_per_byte: number | null;
        tensor_core_percent: number | null;
        bound_by: string | null;
        eager_percent: number | null;
        device_self_percent: number | null;
        device_cumulative_self_percent: number | null;
        host_self_percent: number | null;
        host_cumulative_self_percent: number | null;
        self_percent_with_idle: number | null;
        cumulative_self_percent_with_idle: number | null;
      };
    };
    idle: {
      kind: "table";
      fields: {
        where: string | null;
        type: string | null;
        name: string | null;
        rank_with_idle: number | null;
        total_self_us: number | null;
        self_percent_with_idle: number | null;
        cumulative_self_percent_with_idle: number | null;
      };
    };
    distributions: {
      kind: "table";
      fields: {
        where: string | null;
        by: string | null;
        name: string | null;
        self_us: number | null;
        percent: number | null;
        percent_with_idle: number | null;
      };
    };
    graphs: {
      kind: "table";
      fields: {
        graph: string | null;
        nodes: number | null;
        op_types: string | null;
        unused_nodes: number | null;
        unused_layers: string | null;
      };
    };
    totals: {
      kind: "figures";
      fields: {
        device_ops: number | null;
        device_self_us: number | null;
        device_idle_us: number | null;
        host_ops: number | null;
        host_self_us: number | null;
        host_idle_us: number | null;
      };
    };
    attribution: {
      kind: "figures";
      fields: {
        device_time_us: number | null;
        own_percent: number | null;
        graph_percent: number | null;
        call_percent: number | null;
        around_percent: number | null;
        whole_graph_percent: number | null;
        unattributed_percent: number | null;
      };
    };
  };
  "kernel-stats": {
    rows: {
      kind: "table";
      fields: {
        rank: number | null;
        kernel: string | null;
        op: string | null;
        registers_per_thread: number | null;
        shared_memory_bytes: number | null;
        block_dim: readonly number[] | null;
        grid_dim: readonly number[] | null;
        occupancy_percent: number | null;
        tensor_core_eligible: boolean | null;
        uses_tensor_core: boolean | null;
        occurrences: number | null;
        total_us: number | null;
        avg_us: number | null;
        min_us: number | null;
        max_us: number | null;
        total_percent: number | null;
      };
    };
    by_kernel: {
      kind: "table";
      fields: {
        kernel: string | null;
        occurrences: number | null;
        total_us: number | null;
        percent: number | null;
        op: string | null;
        avg_us: number | null;
        min_us: number | null;
        max_us: number | null;
        uses_tensor_core: boolean | null;
      };
    };
    devices: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        window_ms: number | null;
        utilization_percent: number | null;
        sm_efficiency_percent: number | null;
        occupancy_percent: number | null;
      };
    };
    tensor_cores: {
      kind: "figures";
      fields: {
        uses_percent: number | null;
        unknown_percent: number | null;
        eligible_percent: number | null;
        eligible_unused_percent: number | null;
      };
    };
    launches: {
      kind: "figures";
      fields: {
        kernels: number | null;
        short_kernels_percent: number | null;
        short_kernels_time_percent: number | null;
        cheaper_than_launch_percent: number | null;
        launches: number | null;
        launch_call_us: number | null;
        launch_delay_us: number | null;
        long_delays_percent: number | null;
        gaps: number | null;
        mean_gap_us: number | null;
        time_in_gaps_percent: number | null;
        gaps_late_percent: number | null;
      };
    };
    streams: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        stream: string | null;
        kernels: number | null;
        busy_percent: number | null;
        short_percent: number | null;
        delay_median_us: number | null;
        delay_p90_us: number | null;
        delay_max_us: number | null;
        gaps: number | null;
        gaps_us: number | null;
        longest_gap_us: number | null;
        gaps_late_percent: number | null;
      };
    };
    attribution: {
      kind: "figures";
      fields: {
        device_time_us: number | null;
        own_percent: number | null;
        graph_percent: number | null;
        call_percent: number | null;
        around_percent: number | null;
        whole_graph_percent: number | null;
        unattributed_percent: number | null;
      };
    };
  };
  "memory-profile": {
    memories: {
      kind: "table";
      fields: {
        id: string | null;
        host: string | null;
        allocations: number | null;
        deallocations: number | null;
        capacity_bytes: number | null;
        peak_heap_bytes: number | null;
      };
    };
    peak: {
      kind: "table";
      fields: {
        memory: string | null;
        host: string | null;
        time_ms: number | null;
        step: number | null;
        in_use_bytes: number | null;
        stack_bytes: number | null;
        heap_bytes: number | null;
        free_bytes: number | null;
        reserved_bytes: number | null;
        fragmentation_percent: number | null;
      };
    };
    breakdown: {
      kind: "table";
      fields: {
        op: string | null;
        allocated_bytes: number | null;
        requested_bytes: number | null;
        occurrences: number | null;
        region: string | null;
        dtype: string | null;
        shape: string | null;
        memory: string | null;
        host: string | null;
      };
    };
    purposes: {
      kind: "table";
      fields: {
        purpose: string | null;
        layer: string | null;
        line: string | null;
        allocated_bytes: number | null;
        percent: number | null;
        occurrences: number | null;
        memory: string | null;
        host: string | null;
      };
    };
    growth: {
      kind: "table";
      fields: {
        memory: string | null;
        host: string | null;
        grows: boolean | null;
        bytes_per_step: number | null;
        steps: number | null;
        first_bytes: number | null;
        last_bytes: number | null;
      };
    };
    staying: {
      kind: "table";
      fields: {
        op: string | null;
        place: string | null;
        bytes_per_step: number | null;
        allocated_bytes: number | null;
        allocations: number | null;
        steps: number | null;
        region: string | null;
        dtype: string | null;
        shape: string | null;
        memory: string | null;
        host: string | null;
      };
    };
    timeline: {
      kind: "table";
      fields: {
        memory: string | null;
        host: string | null;
        time_ms: number | null;
        event: string | null;
        requested_bytes: number | null;
        allocated_bytes: number | null;
        op: string | null;
        step: number | null;
        region: string | null;
        dtype: string | null;
        shape: string | null;
        in_use_bytes: number | null;
        stack_bytes: number | null;
        heap_bytes: number | null;
        free_bytes: number | null;
        reserved_bytes: number | null;
        fragmentation_percent: number | null;
      };
    };
  };
  "pod-viewer": {
    workers: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        steps: number | null;
        mean_ms: number | null;
        min_ms: number | null;
        max_ms: number | null;
        busy_ms: number | null;
        slowest_count: number | null;
        bottleneck: string | null;
        bottleneck_ms: number | null;
        start_offset_ms: number | null;
      };
    };
    slowest: {
      kind: "table";
      fields: {
        step: number | null;
        host: string | null;
        device: string | null;
        duration_ms: number | null;
        busy_ms: number | null;
        bottleneck: string | null;
        bottleneck_ms: number | null;
        behind_ms: number | null;
        behind_percent: number | null;
        extra: string | null;
        extra_ms: number | null;
      };
    };
    rows: {
      kind: "table";
      fields: {
        step: number | null;
        host: string | null;
        device: string | null;
        duration_ms: number | null;
        unknown_ms: number | null;
        input_ms: number | null;
        python_ms: number | null;
        host_compute_ms: number | null;
        launch_ms: number | null;
        device_compute_ms: number | null;
        device_gap_ms: number | null;
        copy_ms: number | null;
        communication_ms: number | null;
        compile_ms: number | null;
        sync_ms: number | null;
        checkpoint_ms: number | null;
        contention_ms: number | null;
        bottleneck: string | null;
        complete: boolean | null;
      };
    };
  };
  advice: Record<never, never>;
  proofs: {
    rows: {
      kind: "table";
      fields: {
        place: string | null;
        kind: string | null;
        speedup: number | null;
        speedup_least: number | null;
        speedup_most: number | null;
        sensitivity: number | null;
        sensitivity_least: number | null;
        sensitivity_most: number | null;
        step_ms: number | null;
        changed_ms: number | null;
        place_ms: number | null;
        calls: number | null;
        pairs: number | null;
        steps: number | null;
        program: string | null;
        file: string | null;
        line: number | null;
        note: string | null;
      };
    };
  };
  "tf-data": {
    bottleneck: {
      kind: "figures";
      fields: {
        host: string | null;
        pipeline: string | null;
        iterator: string | null;
        long_name: string | null;
        dataset_op: string | null;
        self_us: number | null;
        slow_self_percent: number | null;
        execution_us: number | null;
      };
    };
    pipelines: {
      kind: "table";
      fields: {
        host: string | null;
        name: string | null;
        calls: number | null;
        slow_calls: number | null;
        min_us: number | null;
        mean_us: number | null;
        max_us: number | null;
        total_ms: number | null;
        bottleneck: string | null;
        iterators: number | null;
      };
    };
    graph: {
      kind: "table";
      fields: {
        name: string | null;
        start_ms: number | null;
        total_us: number | null;
        self_us: number | null;
        calls: number | null;
        critical: boolean | null;
        bottleneck: boolean | null;
      };
    };
    executions: {
      kind: "table";
      fields: {
        host: string | null;
        pipeline: string | null;
        rank: number | null;
        start_ms: number | null;
        duration_us: number | null;
        bottleneck: string | null;
      };
    };
  };
  distributed: {
    causes: {
      kind: "table";
      fields: {
        cause: string | null;
        stage: number | null;
        members: string | null;
        explains_percent: number | null;
        gain_percent: number | null;
        evidence: string | null;
      };
    };
    missing: {
      kind: "table";
      fields: {
        group: string | null;
        number: number | null;
        operation: string | null;
        rank: number | null;
        what: string | null;
        at: string | null;
        others_at: string | null;
      };
    };
    job_parts: {
      kind: "table";
      fields: {
        part: string | null;
        name: string | null;
        slowdown: number | null;
        explains_percent: number | null;
      };
    };
    job_steps: {
      kind: "table";
      fields: {
        step: number | null;
        step_ms: number | null;
        equal_ms: number | null;
        slowdown: number | null;
        slowest: string | null;
      };
    };
    heat: {
      kind: "table";
      fields: {
        table: string | null;
        row: string | null;
        column: string | null;
        slowdown: number | null;
      };
    };
    rows: {
      kind: "table";
      fields: {
        rank: number | null;
        host: string | null;
        span_ms: number | null;
        compute_ms: number | null;
        communication_ms: number | null;
        overlap_ms: number | null;
        exposed_ms: number | null;
        other_work_ms: number | null;
        idle_ms: number | null;
        overlap_percent: number | null;
        waiting_ms: number | null;
        waiting_percent: number | null;
        held_up_ms: number | null;
        last_count: number | null;
        stage: number | null;
        replica: number | null;
      };
    };
    collectives: {
      kind: "table";
      fields: {
        operation: string | null;
        ranks: number | null;
        group: string | null;
        bytes: number | null;
        count: number | null;
        total_us: number | null;
        avg_us: number | null;
        transfer_us: number | null;
        waiting_us: number | null;
        bus_gb_per_s: number | null;
        last: string | null;
      };
    };
    bandwidth: {
      kind: "table";
      fields: {
        operation: string | null;
        algorithm: string | null;
        least_bytes: number | null;
        count: number | null;
        bytes: number | null;
        transfer_us: number | null;
        bus_gb_per_s: number | null;
        least_gb_per_s: number | null;
        most_gb_per_s: number | null;
      };
    };
    groups: {
      kind: "table";
      fields: {
        group: string | null;
        description: string | null;
        parallelism: string | null;
        members: string | null;
        ranks: number | null;
        operations: string | null;
        count: number | null;
        total_us: number | null;
      };
    };
    pipeline: {
      kind: "table";
      fields: {
        group: string | null;
        stage: number | null;
        rank: number | null;
        host: string | null;
        step_ms: number | null;
        bubble_ms: number | null;
        bubble_percent: number | null;
        transfers: number | null;
      };
    };
    clocks: {
      kind: "table";
      fields: {
        rank: number | null;
        host: string | null;
        ahead_ms: number | null;
        uncertainty_ms: number | null;
        collectives: number | null;
      };
    };
    steps: {
      kind: "table";
      fields: {
        step: number | null;
        rank: number | null;
        host: string | null;
        duration_ms: number | null;
        compute_ms: number | null;
        communication_ms: number | null;
        overlap_ms: number | null;
        exposed_ms: number | null;
        other_work_ms: number | null;
        idle_ms: number | null;
        waiting_ms: number | null;
        held_up_ms: number | null;
      };
    };
  };
  idle: {
    causes: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        cause: string | null;
        ms: number | null;
        idle_ms: number | null;
        idle_percent: number | null;
        meaning: string | null;
      };
    };
    rows: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        stream: string | null;
        busy_ms: number | null;
        idle_ms: number | null;
        host_wait_ms: number | null;
        kernel_wait_ms: number | null;
        other_ms: number | null;
        host_wait_percent: number | null;
        kernel_wait_percent: number | null;
        other_percent: number | null;
      };
    };
    gaps: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        stream: string | null;
        start_ms: number | null;
        duration_ms: number | null;
        cause: string | null;
        waits_for: string | null;
        before: string | null;
        after: string | null;
      };
    };
    devices: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        span_ms: number | null;
        busy_ms: number | null;
        idle_ms: number | null;
        idle_percent: number | null;
        computes: boolean | null;
      };
    };
    queues: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        stream: string | null;
        launched: number | null;
        queue_mean: number | null;
        queue_max: number | null;
        empty_percent: number | null;
        full_percent: number | null;
      };
    };
    launches: {
      kind: "figures";
      fields: {
        kernels: number | null;
        short_kernels_percent: number | null;
        short_kernels_time_percent: number | null;
        cheaper_than_launch_percent: number | null;
        launches: number | null;
        launch_call_us: number | null;
        launch_delay_us: number | null;
        long_delays_percent: number | null;
        gaps: number | null;
        mean_gap_us: number | null;
        time_in_gaps_percent: number | null;
        gaps_late_percent: number | null;
      };
    };
  };
  modules: {
    rows: {
      kind: "table";
      fields: {
        id: number | null;
        parent: number | null;
        depth: number | null;
        module: string | null;
        calls: number | null;
        host_us: number | null;
        host_self_us: number | null;
        device_us: number | null;
        device_self_us: number | null;
        backward_us: number | null;
        backward_self_us: number | null;
        kernels: number | null;
        percent: number | null;
      };
    };
  };
  annotations: {
    rows: {
      kind: "table";
      fields: {
        host: string | null;
        name: string | null;
        thread: string | null;
        is_step: boolean | null;
        occurrences: number | null;
        total_ms: number | null;
        self_ms: number | null;
        avg_ms: number | null;
        min_ms: number | null;
        max_ms: number | null;
        device_ms: number | null;
        step_percent: number | null;
      };
    };
  };
  syncs: {
    rows: {
      kind: "table";
      fields: {
        call: string | null;
        op: string | null;
        reason: string | null;
        call_site: string | null;
        count: number | null;
        per_step: number | null;
        total_us: number | null;
        avg_us: number | null;
        max_us: number | null;
        step_percent: number | null;
      };
    };
    reads: {
      kind: "table";
      fields: {
        op: string | null;
        call_site: string | null;
        count: number | null;
        per_step: number | null;
        waits: number | null;
        total_us: number | null;
        max_us: number | null;
      };
    };
  };
  "op-shapes": {
    rows: {
      kind: "table";
      fields: {
        name: string | null;
        input_shapes: string | null;
        input_types: string | null;
        calls: number | null;
        host_total_us: number | null;
        host_self_us: number | null;
        device_total_us: number | null;
        device_self_us: number | null;
        avg_device_us: number | null;
        percent: number | null;
      };
    };
    call_sites: {
      kind: "table";
      fields: {
        name: string | null;
        call_site: string | null;
        calls: number | null;
        host_total_us: number | null;
        host_self_us: number | null;
        device_total_us: number | null;
        device_self_us: number | null;
        avg_device_us: number | null;
        percent: number | null;
      };
    };
    lines: {
      kind: "table";
      fields: {
        call_site: string | null;
        calls: number | null;
        host_self_us: number | null;
        device_self_us: number | null;
        percent: number | null;
      };
    };
  };
  "critical-path": {
    parts: {
      kind: "table";
      fields: {
        part: string | null;
        ms: number | null;
        percent: number | null;
        meaning: string | null;
      };
    };
    rows: {
      kind: "table";
      fields: {
        name: string | null;
        part: string | null;
        count: number | null;
        ms: number | null;
        percent: number | null;
        delay_ms: number | null;
      };
    };
    steps: {
      kind: "table";
      fields: {
        step: number | null;
        host: string | null;
        duration_ms: number | null;
        unknown_ms: number | null;
        input_ms: number | null;
        python_ms: number | null;
        host_compute_ms: number | null;
        launch_ms: number | null;
        device_compute_ms: number | null;
        device_gap_ms: number | null;
        copy_ms: number | null;
        communication_ms: number | null;
        compile_ms: number | null;
        sync_ms: number | null;
        checkpoint_ms: number | null;
        contention_ms: number | null;
        is_median: boolean | null;
      };
    };
  };
  sequences: {
    ops: {
      kind: "table";
      fields: {
        op: string | null;
        host_us: number | null;
        length: number | null;
        count: number | null;
        device_us: number | null;
        avg_device_us: number | null;
        percent: number | null;
        launches_saved: number | null;
        kernels: string | null;
      };
    };
    rows: {
      kind: "table";
      fields: {
        length: number | null;
        count: number | null;
        device_us: number | null;
        avg_device_us: number | null;
        percent: number | null;
        launches_saved: number | null;
        kernels: string | null;
      };
    };
  };
  "op-profile": {
    rows: {
      kind: "table";
      fields: {
        tree: string | null;
        id: number | null;
        parent: number | null;
        depth: number | null;
        kind: string | null;
        name: string | null;
        occurrences: number | null;
        self_us: number | null;
        self_percent: number | null;
        wasted_us: number | null;
        flops: number | null;
        gflop_per_s: number | null;
        compute_percent: number | null;
        gib_per_s: number | null;
        memory_percent: number | null;
      };
    };
    programs: {
      kind: "table";
      fields: {
        program: string | null;
        runs: number | null;
        self_us: number | null;
        self_percent: number | null;
        flops: number | null;
        bytes: number | null;
        costed_percent: number | null;
        mfu_percent: number | null;
        mbu_percent: number | null;
      };
    };
    totals: {
      kind: "figures";
      fields: {
        busy_us: number | null;
        matched_percent: number | null;
        carried_percent: number | null;
        launch_percent: number | null;
        name_percent: number | null;
        copies_percent: number | null;
        unmatched_percent: number | null;
        programs: number | null;
        recorded_programs: number | null;
      };
    };
    devices: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        count: number | null;
        known: boolean | null;
        matrix_tflop_per_s: number | null;
        plain_tflop_per_s: number | null;
        memory_gb_per_s: number | null;
        link_gb_per_s: number | null;
        ridge_flop_per_byte: number | null;
        source: string | null;
      };
    };
  };
  "hlo-stats": {
    rows: {
      kind: "table";
      fields: {
        rank: number | null;
        program: string | null;
        category: string | null;
        name: string | null;
        occurrences: number | null;
        self_us: number | null;
        self_percent: number | null;
        framework_op: string | null;
        total_us: number | null;
        avg_us: number | null;
        avg_self_us: number | null;
        cumulative_self_percent: number | null;
        flops: number | null;
        bytes: number | null;
        gflop_per_s: number | null;
        gib_per_s: number | null;
        flop_per_byte: number | null;
        compute_percent: number | null;
        memory_percent: number | null;
        bound_by: string | null;
        source: string | null;
        precision: string | null;
        rematerialized: boolean | null;
        outside_compilation: boolean | null;
        text: string | null;
      };
    };
    programs: {
      kind: "table";
      fields: {
        program: string | null;
        runs: number | null;
        self_us: number | null;
        self_percent: number | null;
        flops: number | null;
        bytes: number | null;
        costed_percent: number | null;
        mfu_percent: number | null;
        mbu_percent: number | null;
      };
    };
    steps: {
      kind: "figures";
      fields: {
        steps: number | null;
        step_ms: number | null;
        flops_per_step: number | null;
        bytes_per_step: number | null;
        costed_percent: number | null;
        mfu_percent: number | null;
        mbu_percent: number | null;
      };
    };
    compiled: {
      kind: "table";
      fields: {
        function: string | null;
        compilations: number | null;
        total_ms: number | null;
        compile_ms: number | null;
        cache_hits: number | null;
        cache_misses: number | null;
        argument: string | null;
        shapes: string | null;
        place: string | null;
      };
    };
    compilations: {
      kind: "table";
      fields: {
        function: string | null;
        program: string | null;
        host: string | null;
        step: number | null;
        start_ms: number | null;
        total_ms: number | null;
        lower_ms: number | null;
        compile_ms: number | null;
        cache: string | null;
        changed: string | null;
        argument: string | null;
        before: string | null;
        after: string | null;
        place: string | null;
      };
    };
    devices: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        count: number | null;
        known: boolean | null;
        matrix_tflop_per_s: number | null;
        plain_tflop_per_s: number | null;
        memory_gb_per_s: number | null;
        link_gb_per_s: number | null;
        ridge_flop_per_byte: number | null;
        source: string | null;
      };
    };
    totals: {
      kind: "figures";
      fields: {
        busy_us: number | null;
        matched_percent: number | null;
        carried_percent: number | null;
        launch_percent: number | null;
        name_percent: number | null;
        copies_percent: number | null;
        unmatched_percent: number | null;
        programs: number | null;
        recorded_programs: number | null;
      };
    };
  };
  "graph-viewer": {
    rows: {
      kind: "table";
      fields: {
        program: string | null;
        id: number | null;
        name: string | null;
        category: string | null;
        shape: string | null;
        hops: number | null;
        occurrences: number | null;
        self_us: number | null;
        on_path: boolean | null;
        opens: string | null;
        framework_op: string | null;
        source: string | null;
        flops: number | null;
        bytes: number | null;
      };
    };
    path: {
      kind: "table";
      fields: {
        program: string | null;
        place: number | null;
        name: string | null;
        category: string | null;
        self_us: number | null;
        percent: number | null;
      };
    };
    programs: {
      kind: "table";
      fields: {
        program: string | null;
        instructions: number | null;
        computations: number | null;
        edges: number | null;
        self_us: number | null;
        path_us: number | null;
        path_percent: number | null;
      };
    };
    edges: {
      kind: "table";
      fields: {
        program: string | null;
        from_id: number | null;
        to_id: number | null;
        bytes: number | null;
      };
    };
  };
  "memory-viewer": {
    rows: {
      kind: "table";
      fields: {
        rank: number | null;
        program: string | null;
        buffer: string | null;
        kind: string | null;
        shape: string | null;
        bytes: number | null;
        percent: number | null;
        padding_bytes: number | null;
        opcode: string | null;
        framework_op: string | null;
        source: string | null;
        alive_from: number | null;
        alive_to: number | null;
        would_free: string | null;
      };
    };
    programs: {
      kind: "table";
      fields: {
        program: string | null;
        peak_bytes: number | null;
        parameter_bytes: number | null;
        output_bytes: number | null;
        constant_bytes: number | null;
        thread_local_bytes: number | null;
        temporary_bytes: number | null;
        set_aside_bytes: number | null;
        fragmentation_percent: number | null;
        padding_bytes: number | null;
        aliased_bytes: number | null;
        donation_bytes: number | null;
        peak_at: string | null;
        other_spaces_bytes: number | null;
      };
    };
    groups: {
      kind: "table";
      fields: {
        program: string | null;
        by: string | null;
        name: string | null;
        buffers: number | null;
        bytes: number | null;
        percent: number | null;
      };
    };
    timeline: {
      kind: "table";
      fields: {
        program: string | null;
        position: number | null;
        bytes: number | null;
      };
    };
  };
  roofline: {
    rows: {
      kind: "table";
      fields: {
        rank: number | null;
        kind: string | null;
        program: string | null;
        category: string | null;
        name: string | null;
        shapes: string | null;
        occurrences: number | null;
        self_us: number | null;
        self_percent: number | null;
        flops: number | null;
        bytes: number | null;
        gflop_per_s: number | null;
        gib_per_s: number | null;
        flop_per_byte: number | null;
        precision: string | null;
        bound_by: string | null;
        compute_percent: number | null;
        memory_percent: number | null;
        roof_gflop_per_s: number | null;
        efficiency_percent: number | null;
      };
    };
    roofs: {
      kind: "table";
      fields: {
        device: string | null;
        kind: string | null;
        name: string | null;
        tflop_per_s: number | null;
        gb_per_s: number | null;
        ridge_flop_per_byte: number | null;
      };
    };
    steps: {
      kind: "figures";
      fields: {
        steps: number | null;
        step_ms: number | null;
        flops_per_step: number | null;
        bytes_per_step: number | null;
        costed_percent: number | null;
        mfu_percent: number | null;
        mbu_percent: number | null;
      };
    };
    devices: {
      kind: "table";
      fields: {
        host: string | null;
        device: string | null;
        count: number | null;
        known: boolean | null;
        matrix_tflop_per_s: number | null;
        plain_tflop_per_s: number | null;
        memory_gb_per_s: number | null;
        link_gb_per_s: number | null;
        ridge_flop_per_byte: number | null;
        source: string | null;
      };
    };
  };
  inference: {
    rows: {
      kind: "table";
      fields: {
        name: string | null;
        source: string | null;
        runs: number | null;
        mean_ms: number | null;
        p50_ms: number | null;
        p90_ms: number | null;
        p99_ms: number | null;
        max_ms: number | null;
        runs_per_s: number | null;
        mean_requests: number | null;
        max_requests: number | null;
        tokens_per_s: number | null;
        padding_percent: number | null;
        device_percent: number | null;
        queue_ms: number | null;
      };
    };
    differences: {
      kind: "table";
      fields: {
        name: string | null;
        factor: string | null;
        others: number | null;
        slow: number | null;
        ratio: number | null;
      };
    };
    slowest: {
      kind: "table";
      fields: {
        name: string | null;
        host: string | null;
        start_ms: number | null;
        latency_ms: number | null;
        requests: number | null;
        tokens: number | null;
        device_ms: number | null;
      };
    };
  };
  trust: {
    rows: {
      kind: "table";
      fields: {
        host: string | null;
        check: string | null;
        count: number | null;
        percent: number | null;
        found: string | null;
        doubtful: string | null;
        fix: string | null;
        grave: string | null;
      };
    };
  };
  system: {
    rows: {
      kind: "table";
      fields: {
        host: string | null;
        place: string | null;
        counter: string | null;
        unit: string | null;
        samples: number | null;
        mean: number | null;
        min: number | null;
        max: number | null;
        p95: number | null;
      };
    };
  };
}
