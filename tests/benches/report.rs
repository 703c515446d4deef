use tinyspec_benches::report::{Measure, Row, json, table};

fn rows() -> Vec<Row> {
    vec![
        Row::new("limit/fma/1t", Measure::Flops(1.0), 100.0).with_limit(100.0),
        Row::new("gemm/f32/1024/1t", Measure::Flops(1.0), 62.5).with_limit(100.0).with_peer(80.0),
        Row::new("call/prepared", Measure::Times(1.0), 2.25),
    ]
}

#[test]
fn table_is_aligned() {
    let expected = "\
name              median  unit     limit    share  peer
───────────────────────────────────────────────────────
limit/fma/1t       100.0  GFLOP/s  100.0  100.0 %     –
gemm/f32/1024/1t    62.5  GFLOP/s  100.0   62.5 %  80.0
call/prepared        2.2  µs           –        –     –
";
    assert_eq!(table(&rows()), expected);
}

#[test]
fn json_is_an_array_of_rows_and_leaves_out_a_missing_peer() {
    let values: serde_json::Value = serde_json::from_str(&json(&rows()).unwrap()).unwrap();
    let expected = serde_json::json!([
        { "name": "limit/fma/1t", "median": 100.0, "unit": "GFLOP/s", "limit": 100.0, "share": 1.0 },
        { "name": "gemm/f32/1024/1t", "median": 62.5, "unit": "GFLOP/s", "limit": 100.0, "share": 0.625, "peer": 80.0 },
        { "name": "call/prepared", "median": 2.25, "unit": "µs", "limit": null, "share": null },
    ]);
    assert_eq!(values, expected);
}

#[test]
fn a_measure_gives_rates_and_times() {
    assert_eq!(Measure::Flops(4e9).value(2.0), 2.0);
    assert_eq!(Measure::Bytes(1e9).value(0.5), 2.0);
    assert_eq!(Measure::Times(10.0).value(0.001), 100.0);
}
