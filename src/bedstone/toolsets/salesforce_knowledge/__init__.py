"""Knowledge articles of a Salesforce org: search_articles and get_article_by_id."""
