import { describe, expect, it } from "vitest";
import { viewIn, withView } from "../src/tensorboard";

describe("the page's address inside TensorBoard's", () => {
  it("is read back as it was written", () => {
    const view = "#/why/input?session=a b&steps=3-9";
    expect(viewIn(withView("#stepscope", view))).toBe(view);
  });
  it("replaces the one before and keeps what else is there", () => {
    expect(withView("#stepscope&view=%23%2Fold&run=x", "#/new")).toBe("#stepscope&run=x&view=%23%2Fnew");
  });
  it("leaves the address of another tab alone", () => {
    expect(withView("#scalars", "#/new")).toBe("#scalars");
    expect(viewIn("#scalars")).toBe("");
  });
});
