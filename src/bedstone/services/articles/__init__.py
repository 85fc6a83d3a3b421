"""Knowledge articles of a Salesforce org: asked there, or from a mirror of them."""
