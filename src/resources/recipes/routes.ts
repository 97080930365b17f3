import { Elysia, t } from "elysia";
import type { App } from "../../app.ts";
import { authenticated } from "../../http/auth.ts";
import { describe } from "../../http/describe.ts";
import { applyRecipe, listRecipes } from "./recipes.ts";
import { AppliedRecipeShape, RecipeShape } from "./shapes.ts";

export function recipeRoutes(app: App) {
  return new Elysia()
    .use(authenticated(app))
    .get(
      "/recipes",
      ({ user }) => listRecipes(app.db, user),
      describe({ tag: "Recipes", summary: "All recipes", answers: { 200: t.Array(RecipeShape) } }),
    )
    .post("/recipes/:recipe_id/apply", ({ caller, params }) => applyRecipe(app, caller, params.recipe_id), {
      params: t.Object({ recipe_id: t.String({ examples: ["email-summarizer"] }) }),
      ...describe({
        tag: "Recipes",
        summary: "Make the contexts and the inbox of a recipe",
        description:
          "All of it or nothing. What is there already stays as it is: applying twice does no harm.",
        answers: { 200: AppliedRecipeShape },
        errors: ["plan_required", "plan_limit_reached", "storage_full"],
      }),
    });
}
